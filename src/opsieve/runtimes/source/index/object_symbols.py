"""The symbols of a relocatable object: what it defines for others, and what it wants from them.

Layouts: System V ABI, chapter 4. Objects with one section for each function have tens of thousands of sections, so
only the symbol table and its strings are read, and nothing is done for each section.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import HEADER, SECTION_HEADER, SYMBOL, Bytes, Records
from opsieve.errors import InvalidFile

_ET_REL = 1
_SHT_SYMTAB = 2
_STB_LOCAL, _STB_WEAK = 0, 2
_STT_FILE, _STT_SECTION = 4, 3
_MAX_SECTIONS = 1 << 24


@dataclass(frozen=True, slots=True)
class ObjectSymbols:
    """Names as the linker knows them, without those that are local to the object."""

    strong: frozenset[str]
    """Defined, here and nowhere else."""

    weak: frozenset[str]
    """Defined, and perhaps by other objects as well: inline functions, instances of templates."""

    undefined: frozenset[str]
    """Wanted from another object; without those that may stay missing (weak references)."""

    @property
    def defined(self) -> frozenset[str]:
        """All that a link finds here."""
        return self.strong | self.weak


def read_defined(path: Path) -> frozenset[str]:
    """The symbols that an object defines for others. Raises InvalidFile when it is no 64-bit little-endian object."""
    return read_object(path).defined


def read_object(path: Path) -> ObjectSymbols:
    """The symbols of an object, by what they are. Raises InvalidFile when it is no 64-bit little-endian object."""
    content = _content(path)
    table, strings = _tables(content, path)
    binding, kind = table["info"] >> 4, table["info"] & 15
    shared = (binding != _STB_LOCAL) & (kind != _STT_FILE) & (kind != _STT_SECTION) & (table["name"] != 0)
    defined = shared & (table["shndx"] != 0)
    weak = binding == _STB_WEAK
    return ObjectSymbols(
        strong=_names(table[defined & ~weak], strings, path),
        weak=_names(table[defined & weak], strings, path),
        undefined=_names(table[shared & ~defined & ~weak], strings, path),
    )


def _content(path: Path) -> Bytes:
    try:
        with path.open("rb") as stream:
            content = np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        raise InvalidFile(f"cannot read the object: {error}", where=path) from error
    if len(content) < HEADER.itemsize or bytes(content[:6]) != b"\x7fELF\x02\x01":
        raise InvalidFile(
            "this is no 64-bit little-endian ELF object",
            where=path,
            expected="what a compiler writes with -c, without link-time optimisation",
        )
    return content


def _tables(content: Bytes, path: Path) -> tuple[Records, bytes]:
    """The symbol table, without its empty first entry, and the string table that holds its names."""
    header = content[: HEADER.itemsize].view(HEADER)[0]
    if header["type"] != _ET_REL or header["shentsize"] != SECTION_HEADER.itemsize:
        raise InvalidFile(f"ELF type {header['type']} is no object", where=path, expected=f"ET_REL ({_ET_REL})")
    count = int(header["shnum"])
    if count == 0:
        # More sections than the header's field can say: the first section's size says it.
        count = int(_slice(content, int(header["shoff"]), 1, SECTION_HEADER, path)[0]["size"])
    if count > _MAX_SECTIONS:
        raise InvalidFile(f"{count} sections are too many", where=path, expected=f"at most {_MAX_SECTIONS}")
    sections = _slice(content, int(header["shoff"]), count, SECTION_HEADER, path)
    found = sections[sections["type"] == _SHT_SYMTAB]
    if not len(found):
        return np.empty(0, SYMBOL), b"\0"
    symtab = found[0]
    if int(symtab["link"]) >= count:
        raise InvalidFile("the symbol table has no names", where=path)
    names = sections[int(symtab["link"])]
    table = _slice(content, int(symtab["offset"]), int(symtab["size"]) // SYMBOL.itemsize, SYMBOL, path)
    return table[1:], _slice(content, int(names["offset"]), int(names["size"]), np.dtype(np.uint8), path).tobytes()


def _slice(content: Bytes, offset: int, count: int, layout: np.dtype[np.generic], path: Path) -> Records:
    end = offset + count * layout.itemsize
    if end > len(content):
        raise InvalidFile(
            "a table does not lie in the file",
            where=f"{path}, offset {offset:#x}",
            expected=f"{count} entries of {layout.itemsize} bytes within {len(content)} bytes",
        )
    return content[offset:end].view(layout)


def _names(table: Records, strings: bytes, path: Path) -> frozenset[str]:
    found, budget = set(), 8 * len(strings)
    for offset in table["name"].tolist():
        end = strings.find(b"\0", offset)
        budget -= end - offset
        # Names may share a common tail, but a table whose names are much longer than itself is an attack.
        if end < 0 or budget < 0:
            raise InvalidFile("a symbol's name does not lie in the string table", where=path)
        found.add(strings[offset:end].decode("utf-8", "replace"))
    return frozenset(found)
