"""Sharing pages: kept bytes are in their places, entries of removed code are traps, nothing goes in circles."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.code.elf import PT_LOAD
from opsieve.runtimes.wheel.library.ranges import Ranges
from opsieve.runtimes.wheel.library.segments import PAGE, PF_R, PF_X, Segment, lay_out, split
from opsieve.runtimes.wheel.library.sharing import share_nothing, share_pages

PAGES = 24
TRAP = 0xCC


@st.composite
def kept_code(draw: st.DrawFn) -> tuple[Ranges, np.ndarray]:
    """Kept bytes of a library of 24 pages, the file header among them, and entries of removed code."""
    pieces = draw(
        st.lists(st.tuples(st.integers(1, PAGES - 1), st.integers(0, PAGE - 1), st.integers(1, 1500)), max_size=16)
    )
    starts = np.array([0, *(page * PAGE + place for page, place, _ in pieces)], np.int64)
    ends = np.minimum(starts + np.array([64, *(size for _, _, size in pieces)], np.int64), PAGES * PAGE)
    kept = Ranges.of(starts, ends)
    places = draw(st.lists(st.integers(PAGE, PAGES * PAGE - 1), max_size=30))
    entries = np.array(places, np.int64)
    return kept, entries[~kept.contains(entries)]


@settings(max_examples=200)
@given(kept_code())
def test_memory_is_right_though_pages_are_shared(code: tuple[Ranges, np.ndarray]) -> None:
    kept, entries = code
    old = np.random.default_rng(7).integers(0, 255, PAGES * PAGE).astype(np.uint8)
    load = Segment(PT_LOAD, PF_R | PF_X, 0, 0, len(old), len(old), PAGE)
    parts = split(load, kept, 0)
    analysed = Ranges.one(PAGE, len(old))
    sharing = share_pages(parts, analysed, kept, entries)
    assert sorted(part.address for chain in sharing.chains for part in chain) == [p.address for p in parts]
    assert sharing.chains[0][0].address == 0
    layout = lay_out([load], sharing.chains, [], None)
    apart = lay_out([load], share_nothing(parts).chains, [], None)
    assert layout.file_size == apart.file_size - sharing.saved
    assert len(layout.loads) == len(apart.loads)

    file = np.full(layout.file_size, TRAP, np.uint8)
    needed = np.zeros(len(old), bool)
    for start, end in kept:
        needed[start:end] = True
    for part in layout.loads:
        inside = np.flatnonzero(needed[part.address : part.end])
        file[part.offset + inside] = old[part.address + inside]
    for part in layout.loads:
        memory = file[part.offset : part.offset + part.file_size]
        wanted = needed[part.address : part.end]
        assert np.array_equal(memory[wanted], old[part.address : part.end][wanted])
        traps = entries[(entries >= part.address) & (entries < part.end)]
        assert np.all(memory[traps - part.address] == TRAP)


def test_complementary_pages_become_one() -> None:
    ends = [100, PAGE + 3000, 4 * PAGE, 6 * PAGE]
    starts = [0, PAGE, 3 * PAGE + 3000, 5 * PAGE + 4000]
    kept = Ranges.of(np.array(starts), np.array(ends))
    load = Segment(PT_LOAD, PF_R | PF_X, 0, 0, 8 * PAGE, 8 * PAGE, PAGE)
    parts = split(load, kept, 0)
    analysed = Ranges.one(PAGE, 8 * PAGE)
    assert share_pages(parts, analysed, kept, np.empty(0, np.int64)).saved == PAGE
    # A trap that one page needs where the other has code keeps them apart.
    assert share_pages(parts, analysed, kept, np.array([3 * PAGE + 2999, 5 * PAGE + 10])).saved == 0
    # Pages that hold anything but code keep their old contents.
    assert share_pages(parts, Ranges.empty(), kept, np.empty(0, np.int64)).saved == 0
