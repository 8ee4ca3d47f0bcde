"""Where the bytes of a slim library are: every byte of the file is counted exactly once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opsieve.code.elf import SHT_NOBITS, ElfFile
from opsieve.runtimes.wheel.library.ranges import Ranges
from opsieve.runtimes.wheel.library.redirect import RedirectReport


@dataclass(frozen=True, slots=True)
class SectionSize:
    """The bytes of one loaded section, before and after."""

    name: str
    stock: int
    needed: int
    """Bytes that had to stay."""

    in_file: int
    """Bytes that are in the file, because pages are kept whole."""


@dataclass(frozen=True, slots=True)
class SlimReport:
    """Sizes of a slim library, in bytes."""

    stock_size: int
    file_size: int
    sections: tuple[SectionSize, ...]
    between_sections: int
    """File header and whatever else is loaded and in no section."""

    additions: Mapping[str, int]
    padding: int
    """Between the segments of the file, for their alignment."""

    shared: int
    """Bytes of the file that stand for two: they are counted in their sections twice."""

    segments: int
    """Parts that the loader maps."""

    unwind_records: tuple[int, int]
    """FDEs before and after."""

    redirects: RedirectReport | None


def section_sizes(elf: ElfFile, needed: Ranges, in_file: Ranges) -> tuple[SectionSize, ...]:
    """Count the bytes of each loaded section that are needed, and that are in the file."""
    sizes = []
    for section in elf.sections:
        if not section.loaded or section.type == SHT_NOBITS or not section.size:
            continue
        whole = Ranges.one(section.address, section.end)
        sizes.append(
            SectionSize(
                section.name,
                section.size,
                whole.intersection(needed).size,
                whole.intersection(in_file).size,
            )
        )
    return tuple(sizes)
