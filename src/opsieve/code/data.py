"""The data objects of a library: what a reference into data touches.

An object starts at every symbol of type OBJECT and at every slot of the global offset table. What lies between two of
them has no name (constants and tables whose local symbols the compiler dropped) and is divided where code takes an
address that a table can start at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import SHN_UNDEF, STT_OBJECT, ElfFile, Int64s, Records, Section
from opsieve.code.links import Links
from opsieve.code.references import References
from opsieve.code.x86_64 import Flags

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
        index = np.searchsorted(self.starts, addresses, "right") - 1
        outside = (index < 0) | (addresses >= self.ends[index])
        return np.where(outside, -1, index)


def read_data(elf: ElfFile, references: References, links: Links) -> DataTable:
    """Delimit the data objects of all loaded sections that hold no code."""
    sections = [section for section in elf.sections if _holds_data(section)]
    symbols = _objects(elf, sections)
    starts = symbols["value"].astype(np.int64)
    ends = np.maximum.accumulate(starts + np.maximum(symbols["size"].astype(np.int64), 1)) if len(starts) else starts
    section_starts = np.array(sorted(section.address for section in sections), np.int64)
    section_ends = np.array(sorted(section.end for section in sections), np.int64)
    slots = [np.arange(s.address, s.end, _SLOT) for s in sections if s.name.startswith(".got")]
    between = ends[~np.isin(ends, section_ends)]
    nameless = _nameless(starts, ends, references, links)
    nameless = nameless[_within(nameless, sections)]
    all_starts = distinct(np.concatenate([starts, between, nameless, section_starts, *slots]))
    names = np.full(len(all_starts), -1, np.int64)
    names[np.searchsorted(all_starts, starts)] = symbols["name"]
    section_end = section_ends[np.searchsorted(section_ends, all_starts, "right")]
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
    index = np.searchsorted(starts, taken, "right") - 1
    nameless: Int64s = taken[(index < 0) | (taken >= ends[index])]
    return nameless


def _holds_data(section: Section) -> bool:
    return (
        section.loaded
        and not section.executable
        and section.size > 0
        # .tbss takes no room in the image; its addresses belong to the section behind it.
        and section.name not in (*_NOT_DATA, ".tbss")
        and not section.name.startswith((".rela", ".note", ".gnu.version"))
    )


def _objects(elf: ElfFile, sections: list[Section]) -> Records:
    """One symbol per address, the largest, sorted by address."""
    symbols = elf.symbols
    wanted = ((symbols["info"] & 15) == STT_OBJECT) & (symbols["shndx"] != SHN_UNDEF)
    wanted &= np.isin(symbols["shndx"], [section.index for section in sections])
    found = symbols[wanted]
    ordered = found[np.lexsort((-found["size"].astype(np.int64), found["value"]))]
    _, first = np.unique(ordered["value"], return_index=True)
    largest: Records = ordered[first]
    return largest


def _within(addresses: Int64s, sections: list[Section]) -> Flags:
    ordered = sorted(sections, key=lambda section: section.address)
    index = np.searchsorted([section.address for section in ordered], addresses, "right") - 1
    ends = np.array([section.end for section in ordered], np.int64)
    inside: Flags = (index >= 0) & (addresses < ends[np.maximum(index, 0)])
    return inside
