"""The graph that commands read from the cache is the graph that the analysis builds."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.graph.cache import cached_op_graph
from opsieve.graph.invocations import Invocations
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.truth import Truth
from tests.unit.graph.test_store import assert_equal

pytestmark = pytest.mark.torch

STRUCTS = 3101
"""Operators that torchgen writes a struct in `at::_ops` for, in 2.13.0."""


def test_the_cached_graph_is_the_fresh_one(cached_graph: OpGraph, op_graph: OpGraph) -> None:
    assert_equal(cached_graph, op_graph)


def test_it_is_there_at_once_the_second_time(
    cached_graph: OpGraph, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(*arguments: object) -> OpGraph:
        raise AssertionError("built again")

    monkeypatch.setattr("opsieve.graph.cache.build_op_graph", build)
    assert cached_op_graph(library).operators == cached_graph.operators


def test_every_operator_of_torchgen_has_its_dispatch_entries(cached_graph: OpGraph, truth: Truth) -> None:
    invocations: Invocations = cached_graph.invocations
    assert invocations.unnamed == ()
    operators = set(invocations.entries.values())
    assert len(operators) == STRUCTS
    assert len(invocations.entries) == 2 * STRUCTS
    assert operators <= truth.operators.keys()
