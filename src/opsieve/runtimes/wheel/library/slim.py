"""Writing a slim library: only what is kept is in the file, and no address moves.

Because no address moves, no code, symbol, relocation or jump table has to be understood to stay right. Pages that hold
nothing kept are left out of the file; the loader leaves a hole there that faults when touched. On pages that stay,
removed code is overwritten with traps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opsieve.code.elf import EM_X86_64, PROGRAM_HEADER, PT_LOAD, ElfFile
from opsieve.code.links import read_links
from opsieve.code.references import References
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from opsieve.files import replacing_file
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.wheel.library.additions import Additions
from opsieve.runtimes.wheel.library.frames import read_frames
from opsieve.runtimes.wheel.library.guard.install import Guard, make_guard
from opsieve.runtimes.wheel.library.guard.table import STATE_SIZE, RemovedFunctions
from opsieve.runtimes.wheel.library.image import Image
from opsieve.runtimes.wheel.library.kept import KeptCode, droppable, loaded
from opsieve.runtimes.wheel.library.ranges import Ranges
from opsieve.runtimes.wheel.library.redirect import RedirectReport, Redirects, redirect
from opsieve.runtimes.wheel.library.report import SlimReport, section_sizes
from opsieve.runtimes.wheel.library.section_headers import with_section_headers
from opsieve.runtimes.wheel.library.segments import (
    MOST_HEADERS,
    PT_GNU_EH_FRAME,
    PT_NULL,
    PT_PHDR,
    Layout,
    Segment,
    lay_out,
    read_segments,
    split,
)
from opsieve.runtimes.wheel.library.settle import settle_removed
from opsieve.runtimes.wheel.library.sharing import share_nothing, share_pages
from opsieve.runtimes.wheel.library.stubs import PrunedError, Stubs, make_stubs
from opsieve.runtimes.wheel.library.unwind import UnwindCopy, copy_unwind_tables

_TRAP = 0xCC
"""INT3: one byte, so whatever jumps into removed code on a kept page traps at once."""

_HEADERS, _UNWIND, _STUBS, _STRINGS = "program headers", "unwinding tables", "stubs", "stub texts"
_SECTION_HEADERS = "section headers"


@dataclass(frozen=True, slots=True, eq=False)
class SlimPlan:
    """What to do to one library. Without `code` all code stays, and only what is not loaded is dropped."""

    code: KeptCode | None = None
    references: References | None = None
    """Those of all code; without them all constants stay and nothing can be redirected."""

    errors: tuple[PrunedError, ...] = ()
    redirects: Redirects | None = None
    """Removed functions that raise one of `errors`."""

    removed: RemovedFunctions | None = None
    """What the guard can name; without it there is no guard."""

    largest_gap: int = 0
    """Bytes; holes up to this size are not cut out of the file: fewer mappings for more bytes."""


def slim_library(
    elf: ElfFile, plan: SlimPlan, out: Path, *, progress: Progress = SILENT, force: bool = False
) -> SlimReport:
    """Write the slim form of `elf` to `out`.

    Raises UnsupportedLibrary or InvalidLibrary if that cannot be done soundly, OutputExists if `out` exists and `force`
    is not given. `out` is complete or not there at all.
    """
    if elf.machine != EM_X86_64:
        raise UnsupportedLibrary(
            f"the library is for another processor (ELF machine {elf.machine})",
            where=elf.path,
            expected="x86-64 (62)",
        )
    with progress.stage(f"slimming {elf.path.name}") as advance:
        try:
            image, report = _strip(elf) if plan.code is None else _slim(elf, plan, plan.code)
        except OverflowError as error:
            raise InvalidLibrary(
                f"an address is out of reach: {error}", where=elf.path, expected="all addresses below 2 GB"
            ) from error
        contents = with_section_headers(elf, image)
        added = {_SECTION_HEADERS: len(contents) - len(image.data)}
        report = replace(report, file_size=len(contents), additions={**report.additions, **added})
        with replacing_file(out, force=force) as temporary:
            contents.tofile(temporary)
        out.chmod(elf.path.stat().st_mode & 0o777)
        advance(1)
    return report


def _strip(elf: ElfFile) -> tuple[Image, SlimReport]:
    """Keep all segments as they are; what goes is what no segment holds: symbol table, debugging data, sections."""
    segments = read_segments(elf)
    layout = lay_out(segments, [[s] for s in segments if s.type == PT_LOAD], [], table_address=None)
    image = Image(elf, layout)
    image.write_headers(layout, int(elf.header["phoff"]))
    return image, _report(elf, image, layout, image.addresses, {}, 0, (0, 0), None)


def _slim(elf: ElfFile, plan: SlimPlan, code: KeptCode) -> tuple[Image, SlimReport]:
    segments = read_segments(elf)
    frames = read_frames(elf)
    unwind = None if frames is None else copy_unwind_tables(elf, frames, code.frames(frames))
    stay = Ranges.empty() if unwind is None else unwind.in_place
    links = read_links(elf)
    dropped = droppable(elf, code, plan.references, links, stay, unwind=unwind is not None)
    needed = loaded(segments).difference(dropped)
    parts = [part for old in segments if old.type == PT_LOAD for part in split(old, needed, plan.largest_gap)]
    stubs = make_stubs(elf, plan.errors) if plan.errors else None
    guard = make_guard(elf.path.name, plan.removed) if plan.removed is not None else None
    additions = _reserve(elf, segments, len(parts), unwind, stubs, guard)
    table = additions.address(_HEADERS)
    sharing = share_nothing(parts)
    if plan.references is not None:
        entries = code.removed_entries(plan.references, links)
        sharing = share_pages(parts, code.analysed, needed, entries)
    layout = lay_out(_with_unwind(segments, unwind, additions), sharing.chains, additions.segments(), table)
    image = Image(elf, layout)
    image.fill(code.removed, _TRAP)
    image.share(sharing.pages, needed, _TRAP)
    image.write_headers(layout, layout.headers[0].offset)
    if unwind is not None:
        image.write(additions.address(_UNWIND), unwind.render(additions.address(_UNWIND)))
    if guard is not None:
        guard.install(elf, image, additions, table, len(layout.headers))
    raising = np.empty(0, np.int64) if plan.redirects is None else plan.redirects.starts
    settle_removed(elf, image, code.removed, raising)
    redirected = None if stubs is None else _raise_errors(elf, image, plan, code, stubs, additions)
    records = (0, 0) if unwind is None else (len(unwind.frames), len(unwind.kept))
    return image, _report(elf, image, layout, needed, additions.sizes(), sharing.saved, records, redirected)


def _reserve(
    elf: ElfFile,
    segments: tuple[Segment, ...],
    parts: int,
    unwind: UnwindCopy | None,
    stubs: Stubs | None,
    guard: Guard | None,
) -> Additions:
    code, constants, data = guard.sizes() if guard else ({}, {}, {})
    if stubs is not None:
        code, constants = {_STUBS: stubs.code_size, **code}, {_STRINGS: len(stubs.strings), **constants}
    if unwind is not None:
        constants = {_UNWIND: unwind.size, **constants}
    others = sum(segment.type not in (PT_LOAD, PT_PHDR, PT_NULL) for segment in segments)
    headers = 1 + parts + bool(code) + 1 + bool(data) + others
    if headers > MOST_HEADERS:
        raise UnsupportedLibrary(
            f"the library would fall into {headers} parts, more than the loader takes",
            where=elf.path,
            expected=f"at most {MOST_HEADERS}",
            remedy="allow larger gaps between the parts",
        )
    constants = {_HEADERS: headers * PROGRAM_HEADER.itemsize, **constants}
    return Additions.behind(segments, (code, constants, data), memory=STATE_SIZE)


def _with_unwind(segments: tuple[Segment, ...], unwind: UnwindCopy | None, additions: Additions) -> list[Segment]:
    """The old program headers, with the one for the unwinding tables pointing at their copy."""
    if unwind is None:
        return list(segments)
    address, size = additions.address(_UNWIND), unwind.header_size
    return [
        replace(s, address=address, file_size=size, memory_size=size) if s.type == PT_GNU_EH_FRAME else s
        for s in segments
    ]


def _raise_errors(
    elf: ElfFile, image: Image, plan: SlimPlan, code: KeptCode, stubs: Stubs, additions: Additions
) -> RedirectReport | None:
    address, strings = additions.address(_STUBS), additions.address(_STRINGS)
    image.write(address, stubs.render(address, strings))
    image.write(strings, stubs.strings)
    if plan.redirects is None or plan.references is None:
        return None
    return redirect(elf, image, plan.redirects, address, plan.references, code.kept)


def _report(
    elf: ElfFile,
    image: Image,
    layout: Layout,
    needed: Ranges,
    additions: dict[str, int],
    shared: int,
    unwind_records: tuple[int, int],
    redirects: RedirectReport | None,
) -> SlimReport:
    sections = section_sizes(elf, needed, image.addresses)
    old = sum(segment.file_size for segment, _ in layout.pieces)
    return SlimReport(
        stock_size=len(elf.bytes),
        file_size=layout.file_size,
        sections=sections,
        between_sections=old - sum(section.in_file for section in sections),
        additions=additions,
        padding=layout.file_size - old - sum(additions.values()) + shared,
        shared=shared,
        segments=len(layout.loads),
        unwind_records=unwind_records,
        redirects=redirects,
    )
