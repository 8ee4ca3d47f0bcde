"""Which bytes of a library's memory image stay: everything, except what is known to be droppable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import PT_LOAD, ElfFile, Int64s, Section
from opsieve.code.functions import FunctionTable
from opsieve.code.links import Links
from opsieve.code.references import References
from opsieve.runtimes.wheel.library.frames import FrameTable
from opsieve.runtimes.wheel.library.ranges import Flags, Ranges
from opsieve.runtimes.wheel.library.rodata import kept_constants
from opsieve.runtimes.wheel.library.segments import Segment
from opsieve.runtimes.wheel.library.unwind import HANDLER_SECTION

SHF_WRITE = 1
UNWIND_SECTIONS = (".eh_frame_hdr", ".eh_frame", HANDLER_SECTION)


@dataclass(frozen=True, slots=True, eq=False)
class KeptCode:
    """The code that was analysed, and the part of it that stays. Code outside `analysed` is never dropped."""

    analysed: Ranges
    kept: Ranges
    entries: Int64s
    """Addresses at which code begins: of functions and of labels."""

    @classmethod
    def of(cls, functions: FunctionTable, kept: Flags) -> KeptCode:
        """Keep the functions for which `kept` is set, each up to the start of the next."""
        everything = Ranges.of(functions.starts, functions.ends)
        chosen = Ranges.of(functions.starts[kept], functions.ends[kept])
        return cls(everything, chosen, functions.entries)

    @property
    def removed(self) -> Ranges:
        """The code that goes."""
        return self.analysed.difference(self.kept)

    def removed_entries(self, references: References, links: Links) -> Int64s:
        """Wherever removed code may be entered: where it begins, and wherever any instruction or pointer leads."""
        known = (self.entries, references.branch_targets, references.operand_targets, links.targets)
        places = np.concatenate(known)
        return distinct(places[self.removed.contains(places)])

    def frames(self, table: FrameTable) -> Flags:
        """The unwinding records that are needed: of code that stays, and of code that was not analysed."""
        removed = self.removed
        ends = np.maximum(table.ends, table.starts + 1)
        return self.kept.overlaps(table.starts, ends) | ~removed.overlaps(table.starts, ends)


def loaded(segments: tuple[Segment, ...]) -> Ranges:
    """All addresses whose contents come from the file."""
    loads = [segment for segment in segments if segment.type == PT_LOAD]
    return Ranges.of(np.array([s.address for s in loads]), np.array([s.end for s in loads]))


def droppable(
    elf: ElfFile, code: KeptCode, references: References | None, links: Links, stay: Ranges, *, unwind: bool
) -> Ranges:
    """Everything that need not be in the file.

    `references` are those of all code; without them all constants stay. `unwind` says that the unwinding tables are
    copied elsewhere, except for the addresses `stay`.
    """
    parts = [code.removed]
    for section in elf.sections:
        if references is not None and _holds_constants(section):
            kept = kept_constants(elf, section, references, links, code.kept)
            parts.append(Ranges.one(section.address, section.end).difference(kept))
        if unwind and section.name in UNWIND_SECTIONS and not _referenced(section, references, links):
            parts.append(Ranges.one(section.address, section.end).difference(stay))
    return Ranges.empty().union(*parts)


def _holds_constants(section: Section) -> bool:
    named = section.name == ".rodata" or section.name.startswith(".rodata.")
    return named and section.loaded and not section.executable and not section.flags & SHF_WRITE


def _referenced(section: Section, references: References | None, links: Links) -> bool:
    """Whether code or data knows where the section is, so that more than the unwinder may read it there."""
    known = [links.targets] if references is None else [links.targets, references.operand_targets]
    return any(bool(np.any((targets >= section.address) & (targets < section.end))) for targets in known)
