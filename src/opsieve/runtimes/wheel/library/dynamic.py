"""The dynamic section: what the loader runs when it loads and unloads the library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import PT_DYNAMIC, ElfFile, Records
from opsieve.errors import UnsupportedLibrary
from opsieve.runtimes.wheel.library.fields import write_signed
from opsieve.runtimes.wheel.library.image import Image

DT_NULL, DT_INIT, DT_FINI = 0, 12, 13
_ENTRY = np.dtype([("tag", "<i8"), ("value", "<i8")])


@dataclass(frozen=True, slots=True, eq=False)
class DynamicSection:
    """The entries of the dynamic section, those of value DT_NULL at its end included."""

    address: int
    entries: Records

    def value(self, tag: int) -> int:
        """The value of an entry, 0 when the library has none of that kind."""
        rows = np.flatnonzero(self.entries["tag"] == tag)
        return int(self.entries["value"][rows[0]]) if len(rows) else 0


def read_dynamic(elf: ElfFile) -> DynamicSection:
    """Read it. Raises UnsupportedLibrary when the file has none."""
    for segment in elf.segments:
        if segment["type"] == PT_DYNAMIC and segment["offset"] + segment["filesz"] <= len(elf.bytes):
            offset, size = int(segment["offset"]), int(segment["filesz"]) // _ENTRY.itemsize * _ENTRY.itemsize
            return DynamicSection(int(segment["vaddr"]), elf.bytes[offset : offset + size].view(_ENTRY))
    raise UnsupportedLibrary("the library has no dynamic section", where=elf.path)


def set_entry_points(elf: ElfFile, image: Image, values: dict[int, int]) -> None:
    """Set entries such as DT_INIT in `image`. Raises UnsupportedLibrary if there is no room for a new one.

    Linkers leave a few spare DT_NULL entries behind the last one; one of them must remain as the end.
    """
    dynamic = read_dynamic(elf)
    tags = dynamic.entries["tag"].tolist()
    end = tags.index(DT_NULL) if DT_NULL in tags else len(tags)
    for tag, value in values.items():
        if tag in tags[:end]:
            row = tags.index(tag)
        else:
            row, end = end, end + 1
            if end >= len(tags):
                raise UnsupportedLibrary("the dynamic section has no room for the guard", where=elf.path)
            tags[row] = tag
        place = image.positions(np.array([dynamic.address + row * _ENTRY.itemsize]), _ENTRY.itemsize)
        write_signed(image.data, place, np.array([tag]), 8)
        write_signed(image.data, place + 8, np.array([value]), 8)
