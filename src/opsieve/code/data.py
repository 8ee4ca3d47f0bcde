"""The data objects of a library: what a reference into data touches.

An object starts at every symbol of type OBJECT and at every slot of the global offset table. What lies between two of
them has no name (constants and tables whose local symbols the compiler dropped) and is divided where code takes an
address that a table can start at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import STT_OBJECT, ElfFile, Int64s, Section
from opsieve.code.links import Links
from opsieve.code.references import References

_SLOT = 8
_TABLE_ALIGNMENT = 16
"""Compilers align arrays of 16 bytes and more to 16 bytes at least (System V ABI, AMD64 supplement, 3.1.2)."""
_NOT_DATA = (".eh_frame", ".eh_frame_hdr", ".gcc_except_table", ".gnu.hash", ".hash", ".dynsym", ".dynstr")


@dataclass(frozen=True, slots=True)
class DataTable:
    """All data objects in address order, as parallel arrays."""

    starts: Int64s
    ends: Int64s
    """The next start, or the end of the section."""

    names: Int64s
    """Offset of the name in `.strtab`, -1 for an object without a symbol."""

    def __len__(self) -> int:
        return len(self.starts)

    def owner(self, addresses: Int64s) -> Int64s:
        """The index of the object that holds each address, -1 for an address in no object."""
        return _holder(addresses, self.starts, self.ends)


def read_data(elf: ElfFile, references: References, links: Links) -> DataTable:
    """Delimit the data objects of all loaded sections that hold no code."""
    sections = sorted((s for s in elf.sections if _holds_data(s)), key=lambda section: section.address)
    section_starts = np.array([section.address for section in sections], np.int64)
    section_ends = np.array([section.end for section in sections], np.int64)
    starts, ends, symbol_names = _objects(elf, sections)
    slots = [
        np.arange(s.address, s.address + len(elf.contents(s)), _SLOT) for s in sections if s.name.startswith(".got")
    ]
    between = ends[~np.isin(ends, section_ends)]
    nameless = _nameless(starts, ends, references, links)
    nameless = nameless[_holder(nameless, section_starts, section_ends) >= 0]
    all_starts = distinct(np.concatenate([starts, between, nameless, section_starts, *slots]))
    names = np.full(len(all_starts), -1, np.int64)
    names[np.searchsorted(all_starts, starts)] = symbol_names
    section_end = section_ends[_holder(all_starts, section_starts, section_ends)]
    following = np.append(all_starts[1:], section_ends[-1:])
    return DataTable(all_starts, np.minimum(following, section_end), names)


def _nameless(starts: Int64s, ends: Int64s, references: References, links: Links) -> Int64s:
    """Where tables without a symbol start: at addresses that are taken, outside the named objects.

    A loop takes the address of a table's start, and may take that of its end. Any other place in it is read directly
    or, like the end, seldom aligned: such a reference must not cut the table, or the pointers behind it were lost.
    """
    taken = references.operand_targets[references.operand_is_address]
    taken = distinct(np.concatenate([taken, links.targets]))
    taken = taken[taken % _TABLE_ALIGNMENT == 0]
    outside: Int64s = taken[_holder(taken, starts, ends) < 0]
    return outside


def _holds_data(section: Section) -> bool:
    return (
        section.loaded
        and not section.executable
        and section.size > 0
        # .tbss takes no room in the image; its addresses belong to the section behind it.
        and section.name not in (*_NOT_DATA, ".tbss")
        and not section.name.startswith((".rela", ".note", ".gnu.version"))
    )


def _objects(elf: ElfFile, sections: list[Section]) -> tuple[Int64s, Int64s, Int64s]:
    """Start, end and name of the largest symbol of each address, sorted. An end covers the ends of all objects before
    it, for objects may lie in one another; none reaches out of its section."""
    low, high = np.zeros((2, max((section.index for section in sections), default=0) + 1), np.uint64)
    for section in sections:
        low[section.index], high[section.index] = section.address, section.end
    symbols = elf.symbols[(elf.symbols["info"] & 15) == STT_OBJECT]
    symbols = symbols[symbols["shndx"] < len(low)]
    home = symbols["shndx"]
    inside = (symbols["value"] >= low[home]) & (symbols["value"] < high[home])
    symbols, home = symbols[inside], home[inside]
    sizes = np.minimum(np.maximum(symbols["size"], np.uint64(1)), high[home] - symbols["value"]).astype(np.int64)
    order = np.lexsort((-sizes, symbols["value"]))
    starts, first = np.unique(symbols["value"][order].astype(np.int64), return_index=True)
    largest = order[first]
    return starts, np.maximum.accumulate(starts + sizes[largest]), symbols["name"][largest].astype(np.int64)


def _holder(addresses: Int64s, starts: Int64s, ends: Int64s) -> Int64s:
    """The number of the stretch `[starts[i], ends[i])` that holds each address, -1 for none."""
    if not len(starts):
        return np.full(len(addresses), -1, np.int64)
    index = np.searchsorted(starts, addresses, "right") - 1
    return np.where((index >= 0) & (addresses < ends[index]), index, -1)
