"""Packing segments: every kept byte is found at its address, and nothing overlaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opsieve.code.elf import PT_LOAD
from opsieve.runtimes.wheel.library.ranges import Ranges
from opsieve.runtimes.wheel.library.segments import (
    PAGE,
    PF_R,
    PF_W,
    PF_X,
    PT_GNU_EH_FRAME,
    PT_GNU_STACK,
    PT_PHDR,
    Layout,
    Segment,
    lay_out,
    page_up,
    split,
)


@st.composite
def libraries(draw: st.DrawFn) -> tuple[list[Segment], Ranges, int]:
    """The program headers of some library, kept addresses, and the largest gap to leave."""
    segments, address, offset = [], 0, 0
    for number in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1 if number else 64, 20 * PAGE))
        writable = draw(st.booleans())
        zero = draw(st.integers(0, 3 * PAGE)) if writable else 0
        flags = PF_R | (PF_W if writable else draw(st.sampled_from([0, PF_X])))
        alignment = draw(st.sampled_from([PAGE, 16 * PAGE]))
        segments.append(Segment(PT_LOAD, flags, offset, address, size, size + zero, alignment))
        address = page_up(address + size + zero) + draw(st.integers(0, 3)) * 16 * PAGE
        offset = offset + size
        start = draw(st.integers(0, PAGE - 1))
        address, offset = address + start, offset + (start - offset) % PAGE
    pairs = draw(st.lists(st.tuples(st.integers(0, address), st.integers(1, 2 * PAGE)), max_size=12))
    starts = np.array([0, *(start for start, _ in pairs)], np.int64)
    ends = starts + np.array([64, *(size for _, size in pairs)], np.int64)
    return segments, Ranges.of(starts, ends), draw(st.integers(0, 4)) * PAGE


def laid_out(segments: list[Segment], kept: Ranges, gap: int) -> tuple[Layout, list[Segment]]:
    loads = [s for s in segments if s.type == PT_LOAD]
    parts = [part for load in loads for part in split(load, kept, gap)]
    behind = page_up(max(s.address + s.memory_size for s in loads))
    addition = Segment(PT_LOAD, PF_R, 0, behind, 20 * PAGE, 20 * PAGE, PAGE)
    others = [Segment(PT_GNU_STACK, 6, 0, 0, 0, 0, 16), Segment(PT_GNU_EH_FRAME, 4, 0, behind + 8, 40, 40, 4)]
    return lay_out([*segments, *others], [[part] for part in parts], [addition], behind), parts


@given(libraries())
def test_every_kept_byte_is_found_at_its_address(library: tuple[list[Segment], Ranges, int]) -> None:
    segments, kept, gap = library
    layout, _ = laid_out(segments, kept, gap)
    source = {segment.address: old for segment, old in layout.pieces}
    in_file = Ranges.of(np.array([s.address for s in layout.loads]), np.array([s.end for s in layout.loads]))
    for old in segments:
        wanted = kept.intersection(Ranges.one(old.address, old.end))
        assert wanted.difference(in_file).size == 0
        for new in layout.loads:
            if old.address <= new.address < old.end:
                assert source[new.address] - old.offset == new.address - old.address
                assert new.end <= old.end
                assert new.flags == old.flags


@given(libraries())
def test_the_headers_are_as_the_loader_wants_them(library: tuple[list[Segment], Ranges, int]) -> None:
    layout, _ = laid_out(*library)
    assert layout.headers[0].type == PT_PHDR
    assert layout.headers[0].file_size == 56 * len(layout.headers)
    for load in layout.loads:
        assert (load.address - load.offset) % load.alignment == 0
    for before, after in zip(layout.loads, layout.loads[1:], strict=False):
        assert page_up(before.address + before.memory_size) <= after.address // PAGE * PAGE
        assert before.offset + before.file_size <= after.offset
    last = layout.loads[-1]
    assert layout.file_size == last.offset + last.file_size
    assert layout.loads[0].offset == 0
    for other in layout.headers:
        if other.type in (PT_PHDR, PT_GNU_EH_FRAME):
            assert any(s.offset - s.address == other.offset - other.address for s in layout.loads)


@given(libraries())
def test_only_pages_without_kept_bytes_are_left_out(library: tuple[list[Segment], Ranges, int]) -> None:
    segments, kept, gap = library
    _, parts = laid_out(segments, kept, gap)
    for load in segments:
        pieces = [p for p in parts if load.address <= p.address < load.end]
        if load.flags & PF_W:
            assert pieces == [load]
        elif gap == 0:
            whole = Ranges.one(load.address, load.end)
            pages = kept.intersection(whole).rounded(PAGE).intersection(whole)
            assert sum(piece.file_size for piece in pieces) == pages.size


def test_few_headers_stay_in_their_old_place() -> None:
    old = [Segment(PT_PHDR, PF_R, 64, 64, 112, 112, 8), Segment(PT_LOAD, PF_R, 0, 0, 5000, 5000, PAGE)]
    layout = lay_out(old, [old[1:]], [], None)
    assert list(layout.headers) == old
    assert layout.file_size == 5000
