"""Needs on random graphs, against plain walking."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opsieve.operators import OperatorName
from opsieve.runtimes.source.link.account.live_graph import LiveGraph
from opsieve.runtimes.source.link.account.needs import find_needs, reachable

SECTIONS, OPERATORS = 8, 4
ROOT = SECTIONS + OPERATORS
NAMES = tuple(OperatorName("a", f"op{number}") for number in range(OPERATORS))
Edges = set[tuple[int, int]]


def live(edges: Edges, asked: set[int]) -> LiveGraph:
    """Sections 0 to 7, operators 8 to 11, the root 12."""
    all_edges = sorted(edges | {(ROOT, SECTIONS + number) for number in asked})
    sources, targets = np.array(all_edges, np.int64).reshape(-1, 2).T
    weights = np.array([[1 << node, 0, 0, 0] for node in range(ROOT + 1)], np.int64)
    names = frozenset(NAMES[number] for number in asked)
    return LiveGraph(np.arange(SECTIONS), NAMES, {}, names, sources, targets, weights, weights)


def walk(edges: Edges, start: int, *, through_operators: bool, without: set[int]) -> set[int]:
    found: set[int] = set()
    frontier = [start]
    while frontier:
        at = frontier.pop()
        if at != start and at >= SECTIONS and not through_operators:
            continue
        for source, target in edges:
            if source == at and target not in found and target not in without:
                found.add(target)
                frontier.append(target)
    return found


def core_of(edges: Edges) -> set[int]:
    return {node for node in walk(edges, ROOT, through_operators=False, without=set()) if node < SECTIONS} | {ROOT}


NODE = st.integers(0, ROOT - 1)
EDGES = st.sets(st.tuples(NODE, NODE), max_size=30)
FROM_ROOT = st.sets(st.tuples(st.just(ROOT), st.integers(0, SECTIONS - 1)), max_size=2)


@given(EDGES, FROM_ROOT, st.sets(st.integers(0, OPERATORS - 1)))
def test_direct_needs(edges: Edges, from_root: Edges, asked: set[int]) -> None:
    edges = edges | from_root
    core = core_of(edges)
    needs = find_needs(live(edges, asked))
    assert set(np.flatnonzero(needs.core).tolist()) == core
    expected = {(ROOT, n) for n in walk(edges, ROOT, through_operators=False, without=set()) if n >= SECTIONS}
    for operator in range(SECTIONS, ROOT):
        reached = walk(edges, operator, through_operators=False, without=core)
        expected |= {(operator, node) for node in reached if node >= SECTIONS and node != operator}
    assert {(path.source, path.target) for path in needs.paths} == expected


@given(EDGES, FROM_ROOT, st.sets(st.integers(0, OPERATORS - 1)))
def test_a_way_follows_edges_and_passes_no_operator(edges: Edges, from_root: Edges, asked: set[int]) -> None:
    edges = edges | from_root
    for path in find_needs(live(edges, asked)).paths:
        steps = [path.source, *path.between, path.target]
        assert all(step in edges for step in pairwise(steps))
        assert all(node < SECTIONS for node in path.between)


@given(EDGES, FROM_ROOT, st.sets(st.integers(0, OPERATORS - 1)))
def test_what_an_operator_leads_to(edges: Edges, from_root: Edges, asked: set[int]) -> None:
    edges = edges | from_root
    graph, core = live(edges, asked), core_of(edges)
    sums = reachable(graph, find_needs(graph).core)
    for operator in range(SECTIONS, ROOT):
        found = walk(edges, operator, through_operators=True, without=core) | {operator}
        assert sums[operator][0] == sum(1 << node for node in found)
