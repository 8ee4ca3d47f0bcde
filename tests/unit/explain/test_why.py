"""Chains and costs on random operator graphs, against networkx and plain counting."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile, UnknownOperator
from opsieve.explain.why import Why, explain
from opsieve.graph.dependencies import find_dependencies
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.operators import OperatorName
from opsieve.runtimes.wheel.keep import KeptFunctions, kept_functions
from opsieve.select.choose import ExtraOperator, choose
from opsieve.select.selection import Reason, ReasonKind, RuntimeIdentity, Selection
from tests.unit.graph.examples import FUNCTION_SIZE, op_graph

COUNT = 7
INFERENCE = frozenset({Scope.INFERENCE})


def name(number: int) -> str:
    return f"a::op{number}"


def graph_of(needs: set[tuple[int, int]]) -> OpGraph:
    """Operator n has kernel n, and is dispatched by function COUNT + n; its kernel calls what it needs."""
    kernels = {(name(number), "CPU"): [number] for number in range(COUNT)}
    entries = {COUNT + number: name(number) for number in range(COUNT)}
    return op_graph(2 * COUNT, [(a, COUNT + b) for a, b in needs], kernels, entries)


def selection_of(graph: OpGraph, roots: set[int], extra: set[int]) -> Selection:
    uses = (Use("forward", "code.py:1"),)
    found = tuple(RootOperator(OperatorName.parse(name(n)), False, Reach.DISPATCHER, uses) for n in sorted(roots))
    model = ModelNeeds("net.pt", "lite", "f00d", found, ("forward",), ())
    options = [ExtraOperator(OperatorName.parse(name(n)), False, "--op") for n in sorted(extra)]
    return choose(graph, "2.13.0", [model], options)[0]


def answer(graph: OpGraph, selection: Selection, operator: str) -> Why:
    def keep(operators: frozenset[str]) -> KeptFunctions:
        return kept_functions(graph, operators, INFERENCE, np.empty(0, np.int64))

    return explain(graph, selection, operator, keep)


def oracle(graph: OpGraph) -> nx.DiGraph:
    needs = find_dependencies(graph, INFERENCE)
    found = nx.DiGraph([(a, b) for a in graph.operators for b in needs.direct(a)])
    found.add_nodes_from(graph.operators)
    return found


operator = st.integers(0, COUNT - 1)
needs = st.sets(st.tuples(operator, operator), max_size=14)
some = st.sets(operator, max_size=3)


@given(needs, some, some, operator)
def test_one_shortest_chain_for_each_root(
    needs: set[tuple[int, int]], roots: set[int], extra: set[int], asked: int
) -> None:
    graph = graph_of(needs)
    selection = selection_of(graph, roots, extra)
    why = answer(graph, selection, name(asked))
    ways = oracle(graph)
    leading = {name(n) for n in roots | extra if nx.has_path(ways, name(n), name(asked))}
    assert why.present == bool(leading)
    assert {chain.operators[0] for chain in why.chains} == leading
    for chain in why.chains:
        assert chain.operators[-1] == name(asked)
        assert nx.is_path(ways, list(chain.operators))
        assert len(chain.operators) == nx.shortest_path_length(ways, chain.operators[0], name(asked)) + 1
        kind = ReasonKind.MODEL if int(chain.operators[0][-1]) in roots else ReasonKind.OPTION
        assert chain.asked_by.kind is kind
    order = [(chain.asked_by.kind is not ReasonKind.MODEL, len(chain.operators)) for chain in why.chains]
    assert order == sorted(order)


@given(needs, some, operator)
def test_the_cost_is_what_goes_or_comes_with_it(needs: set[tuple[int, int]], roots: set[int], asked: int) -> None:
    graph = graph_of(needs)
    selection = selection_of(graph, roots, set())
    why = answer(graph, selection, name(asked))
    ways, starts = oracle(graph), {name(n) for n in roots}

    def closure(ways: nx.DiGraph, starts: set[str]) -> set[str]:
        return starts.union(*(nx.descendants(ways, start) for start in starts))

    everything = closure(ways, starts)
    assert selection.names == everything
    if why.present:
        without = nx.subgraph(ways, set(graph.operators) - {name(asked)})
        rest = closure(without, starts - {name(asked)})
        assert set(why.cost.operators) == everything - rest
        assert name(asked) in why.cost.operators
    else:
        assert set(why.cost.operators) == closure(ways, starts | {name(asked)}) - everything
    assert list(why.cost.operators) == sorted(why.cost.operators)
    without = everything - set(why.cost.operators)
    assert why.cost.code_bytes == abs(size_of(everything | set(why.cost.operators), needs) - size_of(without, needs))


def size_of(operators: set[str], needs: set[tuple[int, int]]) -> int:
    """Each operator has a kernel of its own, and a dispatch entry where something that stays calls it."""
    called = {name(b) for a, b in needs if name(a) in operators and name(b) in operators}
    return FUNCTION_SIZE * (len(operators) + len(called))


def test_what_any_operator_may_need_is_told() -> None:
    graph = op_graph(
        3, [(2, 1)], {("a::clone", "CPU"): [0], ("_::*", "Conjugate"): [2], ("a::x", "CPU"): [0]}, {1: "a::clone"}
    )
    selection, _ = choose(graph, "2.13.0", [], [ExtraOperator(OperatorName("a", "x"), False, "--op")])
    why = answer(graph, selection, "a::clone")
    assert why.present
    assert why.any_operator
    assert why.chains == ()
    assert not answer(graph, selection, "a::x").any_operator


def test_a_model_comes_before_an_option_as_the_reason() -> None:
    graph = graph_of({(0, 1)})
    why = answer(graph, selection_of(graph, {0}, {0, 1}), name(1))
    assert [chain.operators for chain in why.chains] == [(name(0), name(1)), (name(1),)]
    assert why.chains[0].asked_by == Reason(ReasonKind.MODEL, "net.pt", "forward")


def test_stale_selections_and_unknown_operators_are_refused() -> None:
    graph = graph_of({(0, 1)})
    selection = selection_of(graph, {0}, set())
    with pytest.raises(UnknownOperator, match="a::nothing"):
        answer(graph, selection, "a::nothing")
    stale = replace(selection, runtime=RuntimeIdentity("2.13.0", "ff" * 20))
    with pytest.raises(InvalidFile, match="another library") as fault:
        answer(graph, stale, name(0))
    assert "build again" in (fault.value.remedy or "")
