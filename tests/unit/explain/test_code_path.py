from __future__ import annotations

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from opsieve.code.elf import ElfFile
from opsieve.explain.code_path import code_path, node_names
from opsieve.graph.dependencies import find_dependencies, kernels_in_scope
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope, parse_scopes
from tests.unit.graph.test_dependencies import NODES, OPERATORS, Example, examples
from tests.unit.native import Compiler, fake_torch, op_graph_of

INFERENCE = frozenset({Scope.INFERENCE})


@pytest.fixture(scope="module")
def elf(compiler: Compiler) -> ElfFile:
    return fake_torch(compiler)


@pytest.fixture(scope="module")
def graph(elf: ElfFile) -> OpGraph:
    return op_graph_of(elf)


def steps(elf: ElfFile, graph: OpGraph, source: str, target: str, *scopes: str) -> list[str]:
    return list(node_names(elf, graph, code_path(graph, source, target, parse_scopes(scopes))))


def test_the_functions_between_two_operators_are_named(elf: ElfFile, graph: OpGraph) -> None:
    wrapper, *rest = steps(elf, graph, "aten::linear", "aten::mul.Tensor")
    assert "linear_kernel" in wrapper
    assert rest == [
        "at::native::linear_kernel(int)",
        "at::native::linear_helper(int)",
        "at::_ops::mul_Tensor::call(int)",
    ]


def test_the_path_of_a_scope(elf: ElfFile, graph: OpGraph) -> None:
    assert steps(elf, graph, "aten::to_sparse.sparse_dim", "aten::clone") == []
    path = steps(elf, graph, "aten::to_sparse.sparse_dim", "aten::clone", "sparse")
    assert path[-2:] == ["at::native::sparse_kernel(int)", "at::_ops::clone::call(int)"]


def test_a_lookup_by_name_ends_a_path(elf: ElfFile, graph: OpGraph) -> None:
    assert steps(elf, graph, "custom::entry", "custom::helper")[-1] == "at::native::lookup(int)"


def test_there_is_a_path_for_every_direct_need(graph: OpGraph) -> None:
    needs = find_dependencies(graph, INFERENCE)
    pairs = [(a, b) for a in graph.operators for b in needs.direct(a)]
    assert len(pairs) > 5
    assert all(code_path(graph, a, b, INFERENCE) for a, b in pairs)


@given(examples())
def test_paths_are_shortest_and_made_of_edges(example: Example) -> None:
    graph = example.graph
    stops = graph.invocations.entries
    ways = nx.DiGraph([(a, b) for a, b in example.edges if a not in stops])
    ways.add_nodes_from(range(NODES))
    for source in OPERATORS:
        starts = kernels_in_scope(graph, source, INFERENCE)
        lengths = nx.multi_source_dijkstra_path_length(ways, set(starts)) if starts else {}
        for target in OPERATORS:
            ends = {f for f, operator in (*stops.items(), *graph.invocations.lookups) if operator == target}
            shortest = min((lengths[end] for end in ends if end in lengths), default=None)
            path = code_path(graph, source, target, INFERENCE)
            assert (len(path) - 1 if path else None) == shortest
            if path:
                assert path[0] in starts
                assert path[-1] in ends
                assert all(ways.has_edge(a, b) for a, b in pairwise(path))


def test_nodes_without_a_symbol_are_named_by_their_address(elf: ElfFile, graph: OpGraph) -> None:
    functions, data = graph.code.functions, graph.code.data
    nameless = int(np.flatnonzero(data.names < 0)[0])
    named = int(np.flatnonzero(data.names >= 0)[0])
    found = list(node_names(elf, graph, [len(functions) + nameless, len(functions) + named, 0]))
    assert found[0] == f"data without a symbol at {data.starts[nameless]:#x}"
    assert "without a symbol" not in found[1]
    assert found[2]
