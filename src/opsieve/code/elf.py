"""Reading ELF shared libraries: tables as numpy arrays over a memory map.

Only what the analysis needs, for 64-bit little-endian files; everything else is refused with a reason.
Field layouts: System V ABI, chapter 4 and 5, and its x86-64 supplement.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opsieve.errors import InvalidLibrary

Bytes = npt.NDArray[np.uint8]
Int64s = npt.NDArray[np.int64]
Records = npt.NDArray[np.void]

HEADER = np.dtype(
    [
        ("ident", "S16"),
        ("type", "<u2"),
        ("machine", "<u2"),
        ("version", "<u4"),
        ("entry", "<u8"),
        ("phoff", "<u8"),
        ("shoff", "<u8"),
        ("flags", "<u4"),
        ("ehsize", "<u2"),
        ("phentsize", "<u2"),
        ("phnum", "<u2"),
        ("shentsize", "<u2"),
        ("shnum", "<u2"),
        ("shstrndx", "<u2"),
    ]
)
PROGRAM_HEADER = np.dtype(
    [
        ("type", "<u4"),
        ("flags", "<u4"),
        ("offset", "<u8"),
        ("vaddr", "<u8"),
        ("paddr", "<u8"),
        ("filesz", "<u8"),
        ("memsz", "<u8"),
        ("align", "<u8"),
    ]
)
SECTION_HEADER = np.dtype(
    [
        ("name", "<u4"),
        ("type", "<u4"),
        ("flags", "<u8"),
        ("addr", "<u8"),
        ("offset", "<u8"),
        ("size", "<u8"),
        ("link", "<u4"),
        ("info", "<u4"),
        ("addralign", "<u8"),
        ("entsize", "<u8"),
    ]
)
SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("shndx", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
DYNAMIC = np.dtype([("tag", "<i8"), ("value", "<u8")])

ET_EXEC = 2
ET_DYN = 3
EM_X86_64 = 62
EM_AARCH64 = 183
PT_LOAD = 1
PT_DYNAMIC = 2
DT_NULL = 0
DT_NEEDED = 1
SHT_NOBITS = 8
SHF_ALLOC = 2
SHF_EXECINSTR = 4
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_GNU_IFUNC = 0, 1, 2, 10
SHN_UNDEF = 0
MAX_SECTIONS = 65_279  # SHN_LORESERVE - 1; more need extended numbering, which no PyTorch library uses
MAX_NAME = 1 << 20
MAX_ADDRESS = 1 << 47
"""Behind the last address of a process (x86-64 and AArch64 with 48-bit virtual addresses)."""

MAX_BUILD_ID = 64
"""Bytes; linkers write 8 to 32. It becomes the name of a file."""

_SHARED_NAMES = 8
"""Symbols with a common tail may share it in a string table: how much longer all names may be than the table."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section; `address` and `size` in bytes, `offset` into the file."""

    index: int
    name: str
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int

    @property
    def end(self) -> int:
        """The first address behind the section."""
        return self.address + self.size

    @property
    def executable(self) -> bool:
        """Whether the section holds instructions."""
        return bool(self.flags & SHF_EXECINSTR)

    @property
    def loaded(self) -> bool:
        """Whether the section is part of the memory image."""
        return bool(self.flags & SHF_ALLOC)


class ElfFile:
    """A shared library, mapped read-only. Raises InvalidLibrary, with the offset, where it is malformed.

    `or_program` lets a program pass that is linked to a fixed address, which cannot be analysed but has symbols.
    """

    def __init__(self, path: Path, *, or_program: bool = False) -> None:
        self.path = path
        self._types = (ET_DYN, ET_EXEC) if or_program else (ET_DYN,)
        self._map = _map_file(path)
        self.bytes: Bytes = np.frombuffer(self._map, np.uint8)
        self.header = self._header()
        self.segments = self._segments()
        self.section_headers: Records = self._table("shoff", "shnum", "shentsize", SECTION_HEADER)
        self.sections = self._sections()
        self._by_name = {section.name: section for section in self.sections}

    @property
    def machine(self) -> int:
        """The `EM_*` number of the processor."""
        return int(self.header["machine"])

    def section(self, name: str) -> Section:
        """The section called `name`; raises InvalidLibrary if there is none."""
        found = self._by_name.get(name)
        if found is None:
            raise InvalidLibrary(f"the library has no section {name}", where=self.path)
        return found

    def find_section(self, name: str) -> Section | None:
        """The section called `name`, or None."""
        return self._by_name.get(name)

    def contents(self, section: Section) -> Bytes:
        """The bytes of a section as they are in the file (none for `.bss` and the like)."""
        size = 0 if section.type == SHT_NOBITS else section.size
        return self.bytes[section.offset : section.offset + size]

    def records(self, name: str, layout: np.dtype[np.void]) -> Records:
        """A section as an array of fixed records; empty when the section is missing."""
        section = self._by_name.get(name)
        if section is None:
            return np.empty(0, layout)
        usable = section.size // layout.itemsize * layout.itemsize
        return self.contents(section)[:usable].view(layout)

    @cached_property
    def symbols(self) -> Records:
        """`.symtab`, all symbols (SYMBOL records)."""
        return self.records(".symtab", SYMBOL)

    @cached_property
    def dynamic_symbols(self) -> Records:
        """`.dynsym`, what the library exports and imports (SYMBOL records)."""
        return self.records(".dynsym", SYMBOL)

    @cached_property
    def relocations(self) -> Records:
        """`.rela.dyn`: relocations the loader applies at start (RELOCATION records)."""
        return self.records(".rela.dyn", RELOCATION)

    @cached_property
    def plt_relocations(self) -> Records:
        """`.rela.plt`: relocations of the slots behind the PLT (RELOCATION records)."""
        return self.records(".rela.plt", RELOCATION)

    def name(self, string_table: str, offset: int) -> bytes:
        """The string at `offset` of `.strtab` or `.dynstr`."""
        section = self.section(string_table)
        return self._c_string(section.offset + offset, section.offset + section.size)

    def names_of(self, offsets: Int64s, string_table: str = ".strtab") -> list[bytes]:
        """The strings at many offsets of a string table; empty for an offset of -1."""
        section = self.section(string_table)
        table = self.contents(section)
        zeros = np.flatnonzero(table == 0)
        index = np.searchsorted(zeros, offsets)
        if len(index) and index.max() >= len(zeros):
            raise InvalidLibrary("a name has no end", where=f"{self.path}, offset {section.offset:#x}")
        ends = np.where(offsets >= 0, zeros[index], offsets)
        if (ends - offsets).sum() > _SHARED_NAMES * len(table):
            raise InvalidLibrary("the names are longer than their table", where=f"{self.path}, section {string_table}")
        raw = table.tobytes()
        return [raw[at:end] if at >= 0 else b"" for at, end in zip(offsets.tolist(), ends.tolist(), strict=True)]

    def text_at(self, address: int) -> bytes | None:
        """The C string that the memory image holds at `address`; None outside the file or unterminated."""
        offset = self.offset_of(address)
        if offset is None:
            return None
        end = self._map.find(b"\0", offset, min(offset + MAX_NAME, len(self._map)))
        return None if end < 0 else self._map[offset:end]

    def offset_of(self, address: int) -> int | None:
        """The file offset of an address of the memory image, None if the file does not hold it."""
        for segment in self.segments:
            start = int(segment["vaddr"])
            if segment["type"] == PT_LOAD and start <= address < start + int(segment["filesz"]):
                return address - start + int(segment["offset"])
        return None

    @cached_property
    def build_id(self) -> str | None:
        """The linker's build id in hexadecimal, None when the library has none."""
        section = self._by_name.get(".note.gnu.build-id")
        note = b"" if section is None else self.contents(section)[: 16 + MAX_BUILD_ID].tobytes()
        # Name size 4, size of the id, type 3 (NT_GNU_BUILD_ID), name.
        if note[:4] != b"\4\0\0\0" or note[8:16] != b"\3\0\0\0GNU\0":
            return None
        length = int.from_bytes(note[4:8], "little")
        return note[16 : 16 + length].hex() if 0 < length <= len(note) - 16 else None

    @cached_property
    def needed(self) -> tuple[str, ...]:
        """The names of the libraries that this one needs (DT_NEEDED)."""
        entries = self.records(".dynamic", DYNAMIC)
        end = np.flatnonzero(entries["tag"] == DT_NULL)
        entries = entries[: end[0]] if len(end) else entries
        offsets = entries["value"][entries["tag"] == DT_NEEDED].tolist()
        return tuple(self.name(".dynstr", offset).decode("utf-8", "replace") for offset in offsets)

    def _c_string(self, offset: int, end: int) -> bytes:
        inside = offset < len(self._map)
        stop = self._map.find(b"\0", offset, min(end, offset + MAX_NAME)) if inside else -1
        if stop < 0:
            raise InvalidLibrary("a name has no end", where=f"{self.path}, offset {offset:#x}")
        return self._map[offset:stop]

    def _header(self) -> np.void:
        if len(self.bytes) < HEADER.itemsize or bytes(self.bytes[:4]) != b"\x7fELF":
            raise InvalidLibrary("this is no ELF file", where=self.path, expected="a shared library (.so)")
        if bytes(self.bytes[4:6]) != b"\x02\x01":
            raise InvalidLibrary("only 64-bit little-endian ELF files are read", where=f"{self.path}, offset 4")
        header: np.void = self.bytes[: HEADER.itemsize].view(HEADER)[0]
        if header["type"] not in self._types:
            raise InvalidLibrary(
                f"ELF type {header['type']} is no shared library",
                where=f"{self.path}, offset 16",
                expected="ET_DYN (3)",
            )
        return header

    def _table(self, offset_field: str, count_field: str, size_field: str, layout: np.dtype[np.void]) -> Records:
        offset, count = int(self.header[offset_field]), int(self.header[count_field])
        if count == 0:
            return np.empty(0, layout)
        end = offset + count * layout.itemsize
        if int(self.header[size_field]) != layout.itemsize or end > len(self.bytes) or count > MAX_SECTIONS:
            raise InvalidLibrary(
                "a header table does not lie in the file",
                where=f"{self.path}, offset {offset:#x}",
                expected=f"{count} entries of {layout.itemsize} bytes within {len(self.bytes)} bytes",
            )
        return self.bytes[offset:end].view(layout)

    def _segments(self) -> Records:
        headers = self._table("phoff", "phnum", "phentsize", PROGRAM_HEADER)
        for number, header in enumerate(headers):
            end, address = int(header["offset"]) + int(header["filesz"]), int(header["vaddr"])
            if header["type"] == PT_LOAD and (
                end > len(self.bytes)
                or address + int(header["memsz"]) > MAX_ADDRESS
                or header["filesz"] > header["memsz"]
            ):
                raise InvalidLibrary(
                    f"segment {number} does not lie in the file, or at no address that a process has",
                    where=f"{self.path}, offset {int(header['offset']):#x}",
                    expected=f"at most {len(self.bytes)} bytes",
                    remedy="the file may be truncated; install the package again",
                )
        return headers

    def _sections(self) -> tuple[Section, ...]:
        headers = self.section_headers
        if not len(headers):
            return ()
        index = int(self.header["shstrndx"])
        if index >= len(headers):
            raise InvalidLibrary(f"section {index} should hold the names and is missing", where=self.path)
        names = headers[index]
        sections = tuple(self._section(number, header, names) for number, header in enumerate(headers))
        if sum(len(self.contents(section)) for section in sections) > len(self.bytes):
            raise InvalidLibrary("sections share bytes of the file", where=self.path)
        return sections

    def _section(self, index: int, header: np.void, names: np.void) -> Section:
        offset, size = int(header["offset"]), int(header["size"])
        if header["type"] != SHT_NOBITS and offset + size > len(self.bytes):
            raise InvalidLibrary(
                f"section {index} ends behind the end of the file",
                where=f"{self.path}, offset {offset:#x}",
                expected=f"at most {len(self.bytes)} bytes",
                remedy="the file may be truncated; install the package again",
            )
        if int(header["addr"]) + size > MAX_ADDRESS:
            raise InvalidLibrary(f"section {index} lies at no address that a process has", where=self.path)
        if header["type"] == SHT_NOBITS and header["flags"] & SHF_EXECINSTR:
            raise InvalidLibrary(f"section {index} holds code without its contents", where=self.path)
        start = int(names["offset"])
        name = self._c_string(start + int(header["name"]), start + int(names["size"]))
        return Section(
            index=index,
            name=name.decode("utf-8", "replace"),
            type=int(header["type"]),
            flags=int(header["flags"]),
            address=int(header["addr"]),
            offset=offset,
            size=size,
            link=int(header["link"]),
        )


def _map_file(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as stream:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        raise InvalidLibrary(f"cannot read the file: {error}", where=path) from error
