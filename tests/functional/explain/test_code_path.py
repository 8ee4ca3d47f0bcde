"""Every way through the real code that an explanation shows."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from opsieve.code.elf import ElfFile
from opsieve.explain.code_path import code_path, node_names
from opsieve.graph.dependencies import Dependencies, find_dependencies, kernels_in_scope
from opsieve.graph.load import LIBRARY
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope, parse_scopes
from opsieve.installed import TorchInstall

pytestmark = pytest.mark.torch

INFERENCE = frozenset({Scope.INFERENCE})
SAMPLE = 100


@pytest.fixture(scope="module")
def needs(cached_graph: OpGraph) -> Dependencies:
    return find_dependencies(cached_graph, INFERENCE)


@pytest.mark.parametrize("seed", [1])
def test_every_need_has_a_path_of_real_edges(cached_graph: OpGraph, needs: Dependencies, seed: int) -> None:
    code, names = cached_graph.code, cached_graph.operators
    pairs = [(names[a], names[b]) for a, b in zip(*(axis.tolist() for axis in needs.needs.nonzero()), strict=True)]
    ends: dict[str, set[int]] = {}
    for function, operator in (*cached_graph.invocations.entries.items(), *cached_graph.invocations.lookups):
        ends.setdefault(operator, set()).add(function)
    for source, target in random.Random(seed).sample(pairs, SAMPLE):
        path = code_path(cached_graph, source, target, INFERENCE)
        assert path[0] in kernels_in_scope(cached_graph, source, INFERENCE)
        assert path[-1] in ends[target]
        for a, b in pairwise(path):
            assert b in code.targets[code.first_edge[a] : code.first_edge[a + 1]]


def test_no_path_where_there_is_no_need(cached_graph: OpGraph, needs: Dependencies) -> None:
    assert "aten::lstm.input" not in needs.direct("aten::relu")
    assert code_path(cached_graph, "aten::relu", "aten::lstm.input", INFERENCE) == ()


def test_a_path_that_can_be_read_in_the_source(cached_graph: OpGraph, torch_install: TorchInstall) -> None:
    """at::native::linear calls addmm for a bias and two dimensions (ATen/native/Linear.cpp)."""
    path = code_path(cached_graph, "aten::linear", "aten::addmm", parse_scopes(()))
    names = list(node_names(ElfFile(torch_install.library(LIBRARY)), cached_graph, path))
    assert any(name.startswith("at::native::linear(") for name in names)
    assert names[-1].startswith("at::_ops::addmm::call(")
