"""What stays of a small library with operators, and what its stubs say."""

from __future__ import annotations

import re

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.code.elf import ElfFile
from opsieve.graph.dependencies import find_dependencies
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope, parse_scopes
from opsieve.runtimes.wheel.keep import KeptFunctions, kept_functions
from opsieve.runtimes.wheel.roots import loader_roots
from tests.unit.graph.examples import op_graph
from tests.unit.native import Compiler, Names, fake_torch, op_graph_of


@pytest.fixture(scope="module")
def elf(compiler: Compiler) -> ElfFile:
    return fake_torch(compiler)


@pytest.fixture(scope="module")
def graph(elf: ElfFile) -> OpGraph:
    return op_graph_of(elf)


@pytest.fixture(scope="module")
def names(elf: ElfFile, graph: OpGraph) -> list[str]:
    return Names(elf, graph.code).all()


def keep(elf: ElfFile, graph: OpGraph, *roots: str, scopes: tuple[str, ...] = ()) -> KeptFunctions:
    wanted = parse_scopes(scopes)
    operators = find_dependencies(graph, wanted).closure(roots)
    return kept_functions(graph, operators, wanted, loader_roots(elf, graph.code))


def kernels(names: list[str], flags: np.ndarray) -> set[str]:
    """The kernels (plain functions of at::native) among the flagged functions."""
    found = (re.fullmatch(r"_ZN2at6native\d+(\w+?)E.*", name) for name, flag in zip(names, flags, strict=False) if flag)
    return {match.group(1) for match in found if match}


def test_only_kernels_of_selected_operators_stay(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    found = keep(elf, graph, "aten::relu_")
    # clone serves the fallback for lazy views, which any operator may need.
    assert kernels(names, found.kept) == {
        "relu_inplace_kernel",
        "relu_kernel",
        "boxed_fallback",
        "clone_kernel",
        "boxed_kernel",
        "fallback_kernel",
    }


def test_dependencies_bring_their_kernels(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    found = keep(elf, graph, "aten::linear")
    assert {"linear_kernel", "mul_kernel", "add_kernel"} <= kernels(names, found.kept)
    assert not kernels(names, found.kept) & {"mul_quantized", "sparse_kernel", "custom_kernel"}


@pytest.mark.parametrize(
    ("scopes", "kernel", "stays"),
    [
        ((), "mul_quantized", False),
        (("quantized",), "mul_quantized", True),
        (("sparse",), "mul_quantized", False),
        (("all",), "mul_quantized", True),
    ],
)
def test_a_scope_decides_over_the_kernels_of_an_operator(
    elf: ElfFile, graph: OpGraph, names: list[str], scopes: tuple[str, ...], kernel: str, stays: bool
) -> None:
    found = keep(elf, graph, "aten::mul.Tensor", scopes=scopes)
    assert (kernel in kernels(names, found.kept)) is stays


def test_entries_of_operators_that_are_not_selected_are_cut(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    found = keep(elf, graph, "aten::relu")
    cut = {names[number] for number in found.cut.tolist()}
    assert {"_ZN2at4_ops10mul_Tensor4callEi", "_ZN2at4_ops10mul_Tensor10redispatchEii"} <= cut
    assert not cut & {"_ZN2at4_ops4relu4callEi", "_ZN2at4_ops5clone4callEi"}
    assert not found.kept[found.cut].any()
    # Nothing registers what is not there any more, but all initialisers still run.
    assert found.kept[list(graph.initialisers)].all()


def test_the_static_runtime_follows_its_operator(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    (entry,) = graph.landmarks.static_runtime
    maker = names.index("_ZN5torch3jit8make_mulEv")
    for roots, stays in ((("aten::mul.Tensor",), True), (("aten::relu",), False)):
        scopes = parse_scopes(())
        operators = find_dependencies(graph, scopes).closure(roots)
        found = kept_functions(graph, operators, scopes, np.array([maker]))
        assert bool(found.kept[entry]) is stays
        assert (entry in found.cut.tolist()) is not stays


def test_interpreter_operators_keep_what_they_call(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    found = keep(elf, graph, "aten::__interpolate")
    assert {"linear_kernel", "mul_kernel", "add_kernel"} <= kernels(names, found.kept)


def test_the_size_is_that_of_the_kept_functions(elf: ElfFile, graph: OpGraph) -> None:
    some, more = keep(elf, graph, "aten::relu"), keep(elf, graph, "aten::linear", "aten::relu")
    functions = graph.code.functions
    sizes = (functions.ends - functions.starts).tolist()
    assert some.code_size == sum(size for size, flag in zip(sizes, some.kept.tolist(), strict=True) if flag)
    assert some.code_size < more.code_size < sum(sizes)


NODES, FUNCTIONS = 14, 11
OPERATORS = ("a::a", "a::b", "a::c")
node, function = st.integers(0, NODES - 1), st.integers(0, FUNCTIONS - 1)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[OpGraph, list[tuple[int, int]]]:
    edges = draw(st.lists(st.tuples(node, node), max_size=30))
    some = st.lists(function, max_size=3, unique=True)
    places = st.sampled_from([(o, key) for o in (*OPERATORS, "_::*") for key in ("CPU", "Meta", "Conjugate")])
    return op_graph(
        FUNCTIONS,
        edges,
        draw(st.dictionaries(places, some, max_size=6)),
        draw(st.dictionaries(function, st.sampled_from(OPERATORS), max_size=4)),
        data=NODES - FUNCTIONS,
        declared=OPERATORS,
        initialisers=draw(some),
        wrappers=draw(some),
        registrars=draw(some),
        static_runtime=draw(st.dictionaries(function, st.sampled_from(["a_a", "a_b"]), max_size=2)),
    ), edges


@given(graphs(), st.sets(st.sampled_from(OPERATORS)), st.lists(node, max_size=3))
def test_what_stays_is_what_a_walk_without_the_cuts_finds(
    example: tuple[OpGraph, list[tuple[int, int]]], operators: set[str], outside: list[int]
) -> None:
    graph, edges = example
    scopes = frozenset({Scope.INFERENCE})
    found = kept_functions(graph, frozenset(operators), scopes, np.array(outside, np.int64))
    marks = graph.landmarks
    closed = {f for f, operator in graph.invocations.entries.items() if operator not in operators}
    closed |= {f for f, macro in marks.static_runtime.items() if macro.replace("_", "::") not in operators}
    registering = {*graph.initialisers, *marks.registrars}
    ways = nx.DiGraph()
    ways.add_nodes_from(range(NODES))
    ways.add_edges_from(
        (a, b) for a, b in edges if not ({a, b} & closed) and not (a in registering and b in marks.wrappers)
    )
    starts = {*outside, *(k for kernels in graph.fallbacks.values() for k in kernels)}
    for operator in operators:
        starts.update(graph.registrations.get(operator, {}).get("CPU", ()))
        starts.update(graph.registrations.get(operator, {}).get("Conjugate", ()))
    reached = set().union(*({start, *nx.descendants(ways, start)} for start in starts - closed))
    assert set(np.flatnonzero(found.kept).tolist()) == {n for n in reached if n < FUNCTIONS}
    assert set(found.cut.tolist()) == (closed | set(marks.wrappers)) - reached
