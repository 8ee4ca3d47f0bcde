"""The data objects of a library: what a reference into data touches.

An object starts at every symbol of type OBJECT, at every slot of the global offset table, and at every referenced
address that lies in no such object (constants and tables whose local symbols the compiler dropped).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import SHN_UNDEF, STT_OBJECT, ElfFile, Int64s, Records, Section
from opsieve.code.links import Links
from opsieve.code.references import References

_SLOT = 8
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
    ends = starts + np.maximum(symbols["size"].astype(np.int64), 1)
    referenced = np.concatenate([references.operand_targets, links.targets, links.slots])
    referenced = distinct(referenced[_within(referenced, sections)])
    index = np.searchsorted(starts, referenced, "right") - 1
    nameless = referenced[(index < 0) | (referenced >= ends[index])]
    slots = [np.arange(s.address, s.end, _SLOT) for s in sections if s.name.startswith(".got")]
    tables = np.array([section.address for section in sections if section.name.endswith("_array")], np.int64)
    all_starts = distinct(np.concatenate([starts, nameless, tables, *slots]))
    names = np.full(len(all_starts), -1, np.int64)
    names[np.searchsorted(all_starts, starts)] = symbols["name"]
    section_ends = np.array(sorted(section.end for section in sections), np.int64)
    section_end = section_ends[np.searchsorted(section_ends, all_starts, "right")]
    following = np.append(all_starts[1:], section_ends[-1])
    return DataTable(all_starts, np.minimum(following, section_end), names)


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


def _within(addresses: Int64s, sections: list[Section]) -> np.ndarray:
    ordered = sorted(sections, key=lambda section: section.address)
    index = np.searchsorted([section.address for section in ordered], addresses, "right") - 1
    ends = np.array([section.end for section in ordered], np.int64)
    return (index >= 0) & (addresses < ends[np.maximum(index, 0)])
