"""Dominators on random graphs, against networkx, and against leaving nodes out."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opsieve.runtimes.source.link.account.dominators import find_dominators

COUNT = 12


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, int]], list[int]]:
    """Edges of a graph all of whose nodes can be reached from node 0, and some nodes."""
    edges = {(draw(st.integers(0, node - 1)), node) for node in range(1, COUNT)}
    edges |= draw(st.sets(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=25))
    return sorted(edges), draw(st.lists(st.integers(1, COUNT - 1), unique=True, min_size=1))


def weights() -> np.ndarray:
    return np.array([[1 << node, node] for node in range(COUNT)], np.int64)


@given(graphs())
def test_the_sum_is_of_what_cannot_be_reached_without_the_node(graph: tuple[list[tuple[int, int]], list[int]]) -> None:
    edges, wanted = graph
    sources, targets = np.array(edges).T
    found = find_dominators(sources, targets, weights(), 0, wanted)
    for node in wanted:
        rest = nx.DiGraph(edge for edge in edges if node not in edge)
        rest.add_node(0)
        gone = set(range(COUNT)) - nx.descendants(rest, 0) - {0}
        assert found.sums[node].tolist() == weights()[sorted(gone)].sum(axis=0).tolist()


@given(graphs())
def test_those_above_are_the_dominators(graph: tuple[list[tuple[int, int]], list[int]]) -> None:
    edges, wanted = graph
    sources, targets = np.array(edges).T
    found = find_dominators(sources, targets, weights(), 0, wanted)
    immediate = nx.immediate_dominators(nx.DiGraph(edges), 0)
    for node in wanted:
        above, at = [], node
        while immediate.get(at, at) not in (at, None) and at != 0:
            at = immediate[at]
            if at in wanted:
                above.append(at)
        assert list(found.above[node]) == above


def test_a_long_chain_and_a_loop() -> None:
    count = 50_000
    chain = np.arange(count)
    sources, targets = np.append(chain[:-1], [count - 1]), np.append(chain[1:], [1])
    found = find_dominators(sources, targets, np.ones((count, 1), np.int64), 0, [1, count - 1])
    assert found.sums[1].tolist() == [count - 1]
    assert found.above[count - 1] == (1,)


def test_a_root_alone() -> None:
    none = np.empty(0, np.int64)
    assert find_dominators(none, none, np.ones((1, 4), np.int64), 0, []).sums == {}
