"""A relocatable object as arrays: sections, groups, symbols, relocations, for x86-64 and AArch64.

Layouts: System V ABI, chapter 4. Objects with one section for each function have tens of thousands of sections, so
nothing here is done for each of them in turn.
"""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opsieve.code.elf import HEADER, RELOCATION, SECTION_HEADER, SHF_ALLOC, SYMBOL, Bytes, Int64s, Records
from opsieve.errors import InvalidFile

Bools = npt.NDArray[np.bool_]

SHT_RELA, SHT_NOTE, SHT_GROUP = 4, 7, 17
_SHT_SYMTAB, _SHT_NOBITS, _SHT_SYMTAB_SHNDX = 2, 8, 18
_GRP_COMDAT = 1
_ET_REL, _SHN_LORESERVE, _SHN_XINDEX = 1, 0xFF00, 0xFFFF
_MAX_SECTIONS = 1 << 24
_MAX_NAME = 1 << 20


@dataclass(frozen=True)
class Groups:
    """Section groups: they live and die together, and of several COMDAT groups of one name only the first is used."""

    signatures: tuple[bytes, ...]
    """Of each group."""

    comdat: Bools
    """Of each group: whether its name makes it unique in the program."""

    members: Int64s
    """Section numbers, group after group."""

    owner: Int64s
    """Of each member: the number of its group."""


@dataclass(frozen=True)
class Relocations:
    """All references of an object's loaded sections, as parallel arrays."""

    section: Int64s
    """The section that refers."""

    offset: Int64s
    symbol: Int64s
    addend: Int64s


class ObjectFile:
    """One object, mapped read-only. Raises InvalidFile, with the offset, where it is malformed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _mapped(path)
        self.content: Bytes = np.frombuffer(self._map, np.uint8)
        self.sections_offset = int(self.content[: HEADER.itemsize].view(HEADER)[0]["shoff"])
        self.sections = self._section_headers()
        self.symbols, self._strings = self._symbol_table()
        self.symbol_section = self._symbol_sections()
        """Of each symbol the section that defines it; 0 if it is undefined, -1 if it lies in none."""
        self.section_names = self._section_name_table()

    def __len__(self) -> int:
        return len(self.sections)

    def section_name(self, number: int) -> bytes:
        """The name of a section."""
        return self._text(self.section_names, int(self.sections["name"][number]))

    def named(self, pattern: bytes) -> Int64s:
        """The sections whose whole name matches a regular expression."""
        starts = [match.start() for match in re.finditer(rb"(?:%b)\0" % pattern, self.section_names)]
        return np.flatnonzero(np.isin(self.sections["name"], starts))

    def symbol_name(self, number: int) -> bytes:
        """The name of a symbol; empty for that of a section."""
        return self._text(self._strings, int(self.symbols["name"][number]))

    def symbol_names(self, numbers: Int64s) -> list[bytes]:
        """The names of many symbols."""
        starts = self.symbols["name"][numbers].astype(np.int64)
        table = self._strings
        ends = _ends(np.frombuffer(table, np.uint8), starts, self.path)
        return [table[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def contents(self, number: int) -> Bytes:
        """The bytes of a section; none for `.bss` and the like."""
        header = self.sections[number]
        if header["type"] == _SHT_NOBITS:
            return self.content[:0]
        return self._slice(int(header["offset"]), int(header["size"]), np.dtype(np.uint8)).view(np.uint8)

    def groups(self) -> Groups:
        """The groups of sections."""
        numbers = np.flatnonzero(self.sections["type"] == SHT_GROUP)
        headers = self.sections[numbers]
        if len(numbers) and headers["info"].max() >= len(self.symbols):
            raise InvalidFile("a group of sections has no name", where=self.path)
        words, counts = self._gather(headers, np.dtype("<u4"))
        # The first word of each group says what kind of group it is.
        first = np.cumsum(counts) - counts
        is_flag = np.zeros(len(words), bool)
        is_flag[first[counts > 0]] = True
        flags = np.zeros(len(headers), np.int64)
        flags[counts > 0] = words[is_flag]
        members = words[~is_flag].astype(np.int64)
        owner = np.repeat(np.arange(len(headers)), np.maximum(counts - 1, 0))
        if len(members) and members.max() >= len(self):
            raise InvalidFile("a group holds a section that does not exist", where=self.path)
        names = self._signatures(headers["info"].astype(np.int64))
        return Groups(tuple(names), (flags & _GRP_COMDAT) > 0, members, owner)

    def _signatures(self, symbols: Int64s) -> list[bytes]:
        """A group is named by a symbol; that of a section has the name of the section."""
        names = self.symbol_names(symbols)
        for place, name in enumerate(names):
            if not name:
                names[place] = self.section_name(max(0, int(self.symbol_section[symbols[place]])))
        return names

    def relocations(self, wanted: Bools) -> Relocations:
        """The references of the loaded sections among `wanted`."""
        headers = self.sections[self.sections["type"] == SHT_RELA]
        target = headers["info"].astype(np.int64)
        headers, target = headers[target < len(self)], target[target < len(self)]
        used = wanted[target] & ((self.sections["flags"][target] & SHF_ALLOC) > 0)
        headers, target = headers[used], target[used]
        records, counts = self._gather(headers, RELOCATION)
        symbols = (records["info"] >> np.uint64(32)).astype(np.int64)
        if len(symbols) and symbols.max() >= len(self.symbols):
            raise InvalidFile("a relocation refers to a symbol that does not exist", where=self.path)
        section = np.repeat(target, counts)
        return Relocations(section, records["offset"].astype(np.int64), symbols, records["addend"])

    def _section_headers(self) -> Records:
        header = self.content[: HEADER.itemsize].view(HEADER)[0]
        if header["type"] != _ET_REL or header["shentsize"] != SECTION_HEADER.itemsize:
            raise InvalidFile(
                f"ELF type {header['type']} is no object", where=self.path, expected=f"ET_REL ({_ET_REL})"
            )
        count, offset = int(header["shnum"]), self.sections_offset
        if count == 0:
            # More sections than the header's field can say: the first section's size says it.
            count = int(self._slice(offset, 1, SECTION_HEADER)[0]["size"])
        if count > _MAX_SECTIONS:
            raise InvalidFile(f"{count} sections are too many", where=self.path, expected=f"at most {_MAX_SECTIONS}")
        return self._slice(offset, count, SECTION_HEADER)

    def _symbol_table(self) -> tuple[Records, bytes]:
        found = self.sections[self.sections["type"] == _SHT_SYMTAB]
        if not len(found):
            return np.zeros(1, SYMBOL), b"\0"
        table = self._slice(int(found[0]["offset"]), int(found[0]["size"]) // SYMBOL.itemsize, SYMBOL)
        return table, self._string_table(int(found[0]["link"]))

    def _section_name_table(self) -> bytes:
        header = self.content[: HEADER.itemsize].view(HEADER)[0]
        number = int(header["shstrndx"])
        return self._string_table(int(self.sections["link"][0]) if number == _SHN_XINDEX else number)

    def _string_table(self, number: int) -> bytes:
        if number >= len(self):
            raise InvalidFile("a table of names is missing", where=self.path)
        header = self.sections[number]
        return self._slice(int(header["offset"]), int(header["size"]), np.dtype(np.uint8)).tobytes()

    def _symbol_sections(self) -> Int64s:
        number = self.symbols["shndx"].astype(np.int64)
        extended = self.sections[self.sections["type"] == _SHT_SYMTAB_SHNDX]
        if len(extended):
            high = self._slice(int(extended[0]["offset"]), len(number), np.dtype("<u4")).astype(np.int64)
            number = np.where(number == _SHN_XINDEX, high, np.where(number >= _SHN_LORESERVE, -1, number))
        else:
            number[number >= _SHN_LORESERVE] = -1
        if len(number) and number.max() >= len(self):
            raise InvalidFile("a symbol lies in a section that does not exist", where=self.path)
        return number

    def _slice(self, offset: int, count: int, layout: np.dtype[np.generic]) -> Records:
        end = offset + count * layout.itemsize
        if end > len(self.content):
            raise InvalidFile(
                "a table does not lie in the file",
                where=f"{self.path}, offset {offset:#x}",
                expected=f"{count} entries of {layout.itemsize} bytes within {len(self.content)} bytes",
            )
        return self.content[offset:end].view(layout)

    def _gather(self, headers: Records, layout: np.dtype[np.generic]) -> tuple[Records, Int64s]:
        """The contents of many sections behind each other, as records, and how many records each of them has."""
        starts = headers["offset"].astype(np.uint64)
        counts = headers["size"] // np.uint64(layout.itemsize)
        ends = starts + counts * np.uint64(layout.itemsize)
        limit = len(self.content)
        if len(starts) and (max(int(starts.max()), int(ends.max())) > limit or int(headers["size"].max()) > limit):
            raise InvalidFile("a section does not lie in the file", where=self.path, expected=f"{limit} bytes or less")
        places = zip(starts.tolist(), ends.tolist(), strict=True)
        whole = b"".join([self._map[start:end] for start, end in places])
        if len(whole) > limit:
            raise InvalidFile("sections share bytes of the file", where=self.path)
        return np.frombuffer(whole, layout), counts.astype(np.int64)

    def _text(self, table: bytes, offset: int) -> bytes:
        end = table.find(b"\0", offset, offset + _MAX_NAME)
        if end < 0:
            raise InvalidFile("a name has no end", where=self.path)
        return table[offset:end]


def _ends(table: Bytes, starts: Int64s, path: Path) -> Int64s:
    zeros = np.flatnonzero(table == 0)
    index = np.searchsorted(zeros, starts)
    if len(index) and index.max() >= len(zeros):
        raise InvalidFile("a name has no end", where=path)
    ends: Int64s = zeros[index]
    # Names may share a common tail, but a table whose names are much longer than itself is an attack.
    if len(starts) and int((ends - starts).max()) > _MAX_NAME:
        raise InvalidFile("a name is too long", where=path, expected=f"at most {_MAX_NAME} bytes")
    return ends


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as stream:
            mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"cannot read the object: {error}", where=path) from error
    if len(mapped) < HEADER.itemsize or mapped[:6] != b"\x7fELF\x02\x01":
        raise InvalidFile(
            "this is no 64-bit little-endian ELF object",
            where=path,
            expected="what a compiler writes with -c, without link-time optimisation",
        )
    return mapped
