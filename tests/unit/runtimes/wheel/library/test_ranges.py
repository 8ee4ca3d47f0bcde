"""Sets of addresses against Python's own sets."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opsieve.runtimes.wheel.library.ranges import Ranges

PAIRS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 12)), max_size=12)


def build(pairs: list[tuple[int, int]]) -> tuple[Ranges, set[int]]:
    starts = np.array([start for start, _ in pairs], np.int64)
    sizes = np.array([size for _, size in pairs], np.int64)
    return Ranges.of(starts, starts + sizes), {start + i for start, size in pairs for i in range(size)}


def members(ranges: Ranges) -> set[int]:
    return {address for start, end in ranges for address in range(start, end)}


@given(PAIRS)
def test_the_form_is_sorted_disjoint_and_never_touching(pairs: list[tuple[int, int]]) -> None:
    ranges, expected = build(pairs)
    assert members(ranges) == expected
    assert ranges.size == len(expected)
    assert np.all(ranges.starts < ranges.ends)
    assert np.all(ranges.ends[:-1] < ranges.starts[1:])


@given(PAIRS, PAIRS)
def test_algebra(first: list[tuple[int, int]], second: list[tuple[int, int]]) -> None:
    (a, in_a), (b, in_b) = build(first), build(second)
    assert members(a.union(b)) == in_a | in_b
    assert members(a.intersection(b)) == in_a & in_b
    assert members(a.difference(b)) == in_a - in_b
    assert (a == b) == (in_a == in_b)


@given(PAIRS, PAIRS)
def test_questions(pairs: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    ranges, inside = build(pairs)
    starts = np.array([start for start, _ in asked], np.int64)
    ends = starts + np.array([size for _, size in asked], np.int64)
    assert ranges.contains(starts).tolist() == [start in inside for start, _ in asked]
    expected = [any(i in inside for i in range(start, start + size)) for start, size in asked]
    assert ranges.overlaps(starts, ends).tolist() == expected


@given(PAIRS, st.integers(1, 10))
def test_rounding_gives_the_pages_that_hold_a_member(pairs: list[tuple[int, int]], unit: int) -> None:
    ranges, inside = build(pairs)
    assert members(ranges.rounded(unit)) == {i // unit * unit + k for i in inside for k in range(unit)}


@given(PAIRS, st.integers(0, 10))
def test_bridging_fills_just_the_small_holes(pairs: list[tuple[int, int]], gap: int) -> None:
    ranges, inside = build(pairs)
    bridged = ranges.bridged(gap)
    holes = members(bridged) - inside
    assert members(bridged) >= inside
    assert np.all(bridged.starts[1:] - bridged.ends[:-1] > gap)
    for hole in holes:
        before = max(i for i in inside if i < hole)
        after = min(i for i in inside if i > hole)
        assert after - before - 1 <= gap
