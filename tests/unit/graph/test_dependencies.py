"""Dependencies against a search that anybody can follow, on random graphs and on the small library."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import UnknownOperator
from opsieve.graph.dependencies import Dependencies, find_dependencies, kernels_in_scope
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import AUTOGRAD, VIEW_FALLBACKS, Scope, parse_scopes
from tests.unit.graph.examples import op_graph
from tests.unit.native import Compiler, fake_torch, op_graph_of

NODES = 14
FUNCTIONS = 11
OPERATORS = ("a::a", "a::b", "a::c", "a::d")
KEYS = ("CPU", "CompositeImplicitAutograd", "QuantizedCPU", "Autograd", "Conjugate", "Meta")
node = st.integers(0, NODES - 1)
function = st.integers(0, FUNCTIONS - 1)


@dataclass(frozen=True)
class Example:
    graph: OpGraph
    edges: list[tuple[int, int]]


@st.composite
def examples(draw: st.DrawFn) -> Example:
    edges = draw(st.lists(st.tuples(node, node), max_size=30))
    places = st.sampled_from([(operator, key) for operator in (*OPERATORS, "_::*") for key in KEYS])
    graph = op_graph(
        FUNCTIONS,
        edges,
        draw(st.dictionaries(places, st.lists(function, max_size=2), max_size=8)),
        draw(st.dictionaries(function, st.sampled_from(OPERATORS), max_size=5)),
        lookups=draw(st.lists(st.tuples(function, st.sampled_from(OPERATORS)), max_size=3)),
        data=NODES - FUNCTIONS,
        declared=OPERATORS,
        backward=draw(st.lists(function, max_size=2)),
        object_tables={"quantized": draw(st.lists(node, max_size=2)), "sparse": draw(st.lists(node, max_size=1))},
    )
    return Example(graph, edges)


scopes = st.sets(st.sampled_from(list(Scope))).map(lambda found: frozenset({Scope.INFERENCE, *found}))


def dispatched_from(example: Example, starts: tuple[int, ...], scopes: frozenset[Scope]) -> set[str]:
    """Walk from each start, but not on from a dispatch entry, and not through backward formulas unless they run."""
    graph, invocations = example.graph, example.graph.invocations
    closed = set() if scopes & {Scope.AUTOGRAD, Scope.ALL} else set(graph.landmarks.backward)
    ways = nx.DiGraph()
    ways.add_nodes_from(range(NODES))
    ways.add_edges_from(
        (a, b) for a, b in example.edges if a not in invocations.entries and a not in closed and b not in closed
    )
    reached = set(starts).union(*(nx.descendants(ways, start) for start in starts))
    found = {operator for function, operator in invocations.entries.items() if function in reached}
    return found | {operator for function, operator in invocations.lookups if function in reached}


def starts_of_anything(graph: OpGraph, scopes: frozenset[Scope]) -> tuple[int, ...]:
    keys = graph.fallbacks if Scope.ALL in scopes else {*VIEW_FALLBACKS, *AUTOGRAD}
    tables = graph.landmarks.object_tables
    nodes = [node for scope, found in tables.items() if Scope.ALL in scopes or scope in scopes for node in found]
    return (*(kernel for key in keys for kernel in graph.fallbacks.get(key, ())), *nodes)


@given(examples(), scopes)
def test_needs_are_what_a_walk_from_the_kernels_finds(example: Example, scopes: frozenset[Scope]) -> None:
    found = find_dependencies(example.graph, scopes)
    for operator in example.graph.operators:
        kernels = kernels_in_scope(example.graph, operator, scopes)
        assert found.direct(operator) == dispatched_from(example, kernels, scopes) - {operator}
    assert found.always == dispatched_from(example, starts_of_anything(example.graph, scopes), scopes)


@given(examples(), scopes, st.sets(st.sampled_from(OPERATORS)))
def test_the_closure_is_all_that_the_needs_lead_to(example: Example, scopes: frozenset[Scope], roots: set[str]) -> None:
    found = find_dependencies(example.graph, scopes)
    needs = nx.DiGraph()
    needs.add_nodes_from(example.graph.operators)
    needs.add_edges_from((a, b) for a in example.graph.operators for b in found.direct(a))
    starts = roots | found.always
    closure = starts.union(*(nx.descendants(needs, start) for start in starts))
    assert found.closure(roots) == closure
    parents = found.parents(roots)
    assert parents.keys() == closure
    assert {operator for operator, parent in parents.items() if parent is None} == starts
    depth = {
        operator: min(
            nx.shortest_path_length(needs, start, operator) for start in starts if nx.has_path(needs, start, operator)
        )
        for operator in closure
    }
    for operator, parent in parents.items():
        if parent is not None:
            assert operator in found.direct(parent)
            assert depth[operator] == depth[parent] + 1


@given(examples(), scopes, scopes)
def test_a_wider_scope_needs_no_less(example: Example, some: frozenset[Scope], more: frozenset[Scope]) -> None:
    narrow, wide = find_dependencies(example.graph, some), find_dependencies(example.graph, some | more)
    assert narrow.always <= wide.always
    assert all(narrow.direct(operator) <= wide.direct(operator) for operator in example.graph.operators)


@pytest.fixture(scope="module")
def fake(compiler: Compiler) -> OpGraph:
    return op_graph_of(fake_torch(compiler))


@pytest.mark.parametrize(
    ("operator", "scopes", "expected"),
    [
        ("aten::add.Tensor", (), set()),
        ("aten::mul.Tensor", (), {"aten::add.Tensor"}),
        ("aten::mul.Tensor", ("quantized",), {"aten::add.Tensor", "aten::relu"}),
        ("aten::mul.Tensor", ("autograd",), {"aten::add.Tensor", "aten::linear"}),
        ("aten::linear", (), {"aten::mul.Tensor", "aten::add.Tensor"}),
        ("aten::relu_", (), {"aten::relu"}),
        ("aten::relu", (), set()),
        ("aten::to_sparse.sparse_dim", (), set()),
        ("aten::to_sparse.sparse_dim", ("sparse",), {"aten::clone"}),
        ("aten::to_sparse.sparse_dim", ("all",), {"aten::clone"}),
        ("custom::entry", (), {"custom::helper"}),
        ("aten::upper.str", (), {"aten::clone"}),
        ("aten::__interpolate", (), {"aten::linear"}),
        ("aten::only_declared", ("all",), set()),
    ],
)
def test_needs_in_a_library(fake: OpGraph, operator: str, scopes: tuple[str, ...], expected: set[str]) -> None:
    assert find_dependencies(fake, parse_scopes(scopes)).direct(operator) == expected


def test_what_any_operator_needs_in_a_library(fake: OpGraph) -> None:
    assert find_dependencies(fake, parse_scopes(())).always == {"aten::clone"}
    assert find_dependencies(fake, parse_scopes(("sparse",))).always == {"aten::clone", "aten::to_sparse.sparse_dim"}


def test_closures_in_a_library(fake: OpGraph) -> None:
    found: Dependencies = find_dependencies(fake, parse_scopes(()))
    assert found.closure(["aten::linear"]) == {"aten::linear", "aten::mul.Tensor", "aten::add.Tensor", "aten::clone"}
    assert found.parents(["aten::linear"])["aten::add.Tensor"] == "aten::linear"
    with pytest.raises(UnknownOperator):
        found.closure(["aten::nothing"])
    with pytest.raises(UnknownOperator):
        found.direct("aten::nothing")
