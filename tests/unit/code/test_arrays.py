from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opsieve.code.arrays import distinct
from opsieve.code.graph import compress, reachable, successor_positions

NODES = 12
edges = st.lists(st.tuples(st.integers(-1, NODES - 1), st.integers(-1, NODES - 1)), max_size=40)
nodes = st.lists(st.integers(0, NODES - 1), max_size=6)


def compressed(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    columns = np.array(pairs, np.int64).reshape(-1, 2)
    return compress(columns[:, 0], columns[:, 1], NODES)


def real(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The edges that count: -1 is nowhere, and a node does not lead to itself."""
    return sorted({(a, b) for a, b in pairs if a >= 0 and b >= 0 and a != b})


@given(st.lists(st.integers(-(2**40), 2**40)), st.sampled_from([np.int64, np.int32, np.uint64]))
def test_distinct_is_what_numpy_calls_unique(values: list[int], kind: type) -> None:
    array = np.array(values, np.int64).astype(kind)
    found = distinct(array)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, np.unique(array.astype(np.int64)))


@given(edges)
def test_compressed_edges_are_the_edges_sorted_and_each_once(pairs: list[tuple[int, int]]) -> None:
    first_edge, targets = compressed(pairs)
    assert len(first_edge) == NODES + 1
    assert targets.dtype == np.int32
    sources = np.repeat(np.arange(NODES), np.diff(first_edge))
    assert list(zip(sources.tolist(), targets.tolist(), strict=True)) == real(pairs)


@given(edges, nodes)
def test_successors_come_node_by_node(pairs: list[tuple[int, int]], wanted: list[int]) -> None:
    first_edge, targets = compressed(pairs)
    found = targets[successor_positions(np.array(wanted, np.int64), first_edge)]
    assert found.tolist() == [b for node in wanted for a, b in real(pairs) if a == node]


@given(edges, nodes)
def test_reachable_is_what_networkx_says(pairs: list[tuple[int, int]], roots: list[int]) -> None:
    graph = nx.DiGraph(real(pairs))
    graph.add_nodes_from(range(NODES))
    expected = set(roots).union(*(nx.descendants(graph, root) for root in roots))
    flags = reachable(np.array(roots, np.int64), *compressed(pairs))
    assert set(np.flatnonzero(flags).tolist()) == expected


def test_a_graph_without_nodes_has_no_edges() -> None:
    empty = np.empty(0, np.int64)
    first_edge, targets = compress(empty, empty, 0)
    assert (first_edge.tolist(), targets.tolist()) == ([0], [])
    assert reachable(empty, first_edge, targets).tolist() == []
