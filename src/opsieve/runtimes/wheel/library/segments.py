"""Program headers of the slim library: which bytes of the file the loader puts where.

Addresses never move. The kept pages of each old segment become segments of their own, packed one behind the other in
the file; what is new (unwinding tables, stubs, the guard, the header table itself) follows behind the last address.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from opsieve.code.elf import PROGRAM_HEADER, PT_LOAD, ElfFile, Records
from opsieve.errors import UnsupportedLibrary
from opsieve.runtimes.wheel.library.ranges import Ranges

PT_NULL, PT_PHDR, PT_GNU_EH_FRAME, PT_GNU_STACK = 0, 6, 0x6474E550, 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4
PAGE = 4096
"""Bytes; the page of x86-64, the unit in which the loader maps a file."""

_END_OF_ADDRESSES = 1 << 31
"""Code reaches its own library by distances of 32 bits, and so do the unwinding tables."""

MOST_HEADERS = 60_000
"""Linux maps at most 65,530 areas in one process (vm.max_map_count), and every hole is one too, so far fewer are wise;
the field e_phnum itself ends at 65,534."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header; addresses, offsets and sizes in bytes."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int

    @property
    def end(self) -> int:
        """The address behind the bytes that come from the file."""
        return self.address + self.file_size


def read_segments(elf: ElfFile) -> tuple[Segment, ...]:
    """All program headers of the library. Raises UnsupportedLibrary if its pages cannot be mapped one by one."""
    segments = tuple(
        Segment(*(int(header[name]) for name in ("type", "flags", "offset", "vaddr", "filesz", "memsz", "align")))
        for header in elf.segments
    )
    loads = [segment for segment in segments if segment.type == PT_LOAD]
    ends = [segment.address + segment.memory_size for segment in segments]
    if max([0, *ends, *(section.end for section in elf.sections if section.loaded)]) >= _END_OF_ADDRESSES:
        raise UnsupportedLibrary("the library is larger than 2 GB", where=elf.path)
    for before, after in pairwise(loads):
        if page_up(before.address + before.memory_size) > page_down(after.address):
            raise UnsupportedLibrary("two segments share a page, or are out of order", where=elf.path)
    for load in loads:
        if (load.offset - load.address) % PAGE or load.offset + load.file_size > len(elf.bytes):
            raise UnsupportedLibrary(
                "a segment does not lie in the file as the loader needs it",
                where=f"{elf.path}, address {load.address:#x}",
            )
    if not loads or loads[0].offset != 0:
        raise UnsupportedLibrary("the file header is not part of what is loaded", where=elf.path)
    return segments


def page_down(address: int) -> int:
    """The start of the page that holds `address`."""
    return address // PAGE * PAGE


def page_up(address: int) -> int:
    """The start of the first page at or behind `address`."""
    return -(-address // PAGE) * PAGE


def split(load: Segment, kept: Ranges, gap: int) -> list[Segment]:
    """The parts of one old segment that hold kept bytes, as whole pages; holes of up to `gap` bytes are not cut out.

    Offsets are those of the old file. A writable segment stays whole: the program may change any of its bytes.
    """
    if load.flags & PF_W or load.memory_size != load.file_size:
        return [load]
    whole = Ranges.one(load.address, load.end)
    pages = kept.intersection(whole).rounded(PAGE).bridged(gap).intersection(whole)
    return [
        replace(
            load,
            offset=load.offset + start - load.address,
            address=start,
            file_size=end - start,
            memory_size=end - start,
        )
        for start, end in pages
    ]


@dataclass(frozen=True, slots=True)
class Layout:
    """All program headers of the new file in their order, and where their contents come from."""

    headers: tuple[Segment, ...]
    pieces: tuple[tuple[Segment, int], ...]
    """Parts of the old file: the new segment, and the offset of its first byte in the old file."""

    file_size: int

    @property
    def loads(self) -> tuple[Segment, ...]:
        """The segments that the loader maps, by address."""
        return tuple(segment for segment in self.headers if segment.type == PT_LOAD)


def lay_out(
    old: Sequence[Segment],
    chains: Sequence[Sequence[Segment]],
    additions: Sequence[Segment],
    table_address: int | None,
) -> Layout:
    """Give every part of the old file and every addition its place in the new one.

    `chains` are the parts with their old offsets, in the order in which they are to stand in the file; the parts of
    one chain overlap by a page (module `sharing`). `additions` have addresses behind them in ascending order, and one
    of them holds the header table at `table_address`, unless that is None: then the old table has room for the new one.
    The order of the headers is the one the ABI asks for: PT_PHDR before any PT_LOAD, PT_LOAD by address.
    """
    cursor, placed = 0, []
    for chain in (*chains, *([addition] for addition in additions)):
        for number, segment in enumerate(chain):
            offset = cursor - PAGE if number else cursor + (segment.address - cursor) % PAGE
            cursor = offset + segment.file_size
            placed.append((_at(segment, offset), segment.offset))
    placed.sort(key=lambda pair: pair[0].address)
    loads = [segment for segment, _ in placed]
    head = [segment for segment in old if segment.type == PT_PHDR and table_address is None]
    others = [segment for segment in old if segment.type not in (PT_LOAD, PT_PHDR, PT_NULL)]
    if table_address is not None:
        size = PROGRAM_HEADER.itemsize * (1 + len(loads) + len(others))
        head = [Segment(PT_PHDR, PF_R, 0, table_address, size, size, 8)]
    headers = (*(_moved(segment, loads) for segment in head), *loads, *(_moved(other, loads) for other in others))
    return Layout(headers, tuple(placed[: len(placed) - len(additions)]), cursor)


def _at(segment: Segment, offset: int) -> Segment:
    """The segment with its offset in the new file.

    The loader asks for offset and address to agree in their alignment; what wants more than a page gets it from the
    first segment, by which the loader aligns the whole library.
    """
    fits = segment.alignment > 0 and (offset - segment.address) % segment.alignment == 0
    return replace(segment, offset=offset, alignment=segment.alignment if fits else PAGE)


def _moved(segment: Segment, loads: Sequence[Segment]) -> Segment:
    """The segment with its offset in the new file: that of the loaded segment it lies in."""
    for load in loads:
        if load.address <= segment.address and segment.end <= load.end:
            return replace(segment, offset=load.offset + segment.address - load.address)
    return replace(segment, offset=0)


def header_records(headers: Sequence[Segment]) -> Records:
    """The header table as it stands in the file."""
    records = np.zeros(len(headers), PROGRAM_HEADER)
    for record, segment in zip(records, headers, strict=True):
        record["type"], record["flags"], record["offset"] = segment.type, segment.flags, segment.offset
        record["vaddr"] = record["paddr"] = segment.address
        record["filesz"], record["memsz"] = segment.file_size, segment.memory_size
        record["align"] = segment.alignment
    return records
