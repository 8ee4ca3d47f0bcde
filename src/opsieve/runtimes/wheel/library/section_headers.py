"""Section headers for a slim library. The loader needs none, but linkers find the exported symbols through them.

Sections keep their numbers, because symbols refer to them. One that is not wholly in the file any more is said to
occupy no file space, as in the files that `objcopy --only-keep-debug` makes; one that is never loaded becomes empty.
"""

from __future__ import annotations

import numpy as np

from opsieve.code.elf import HEADER, SECTION_HEADER, SHT_NOBITS, Bytes, ElfFile, Records
from opsieve.runtimes.wheel.library.image import Image

_NAMES = b".shstrtab"
_SHT_STRTAB = 3
_ALIGNMENT = 8


def with_section_headers(elf: ElfFile, image: Image) -> Bytes:
    """The contents of the file, with the names of the sections and their headers behind the rest."""
    if not elf.sections:
        return image.data
    names = bytearray(b"\0")
    table = np.zeros(len(elf.sections) + 1, SECTION_HEADER)
    for section, old in zip(elf.sections, elf.section_headers, strict=True):
        if not section.loaded or section.index == 0:
            continue
        new = table[section.index : section.index + 1]
        new[0] = old
        new["name"] = len(names)
        names += section.name.encode() + b"\0"
        _place(new, image)
    names_at = len(image.data)
    table[-1]["name"] = len(names)
    names += _NAMES + b"\0"
    table[-1]["type"], table[-1]["addralign"] = _SHT_STRTAB, 1
    table[-1]["offset"], table[-1]["size"] = names_at, len(names)
    names += bytes(-(names_at + len(names)) % _ALIGNMENT)
    data = np.concatenate([image.data, np.frombuffer(bytes(names), np.uint8), table.view(np.uint8)])
    header = data[: HEADER.itemsize].view(HEADER)[0]
    header["shoff"], header["shentsize"] = names_at + len(names), SECTION_HEADER.itemsize
    header["shnum"], header["shstrndx"] = len(table), len(table) - 1
    return data


def _place(header: Records, image: Image) -> None:
    """Where the section stands in the new file; without file space if it is not all there."""
    address, size = header["addr"].astype(np.int64), int(header["size"][0])
    if header["type"][0] != SHT_NOBITS and size and image.holds(address, size).all():
        header["offset"] = image.positions(address, size)
    else:
        header["type"], header["offset"] = SHT_NOBITS, 0
