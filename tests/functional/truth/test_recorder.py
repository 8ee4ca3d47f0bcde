"""The recorder must see every dispatch, with its true parent: on it rests what the soundness tests are worth."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from opsieve.installed import TorchInstall, find_torch, run_child
from tests.functional.truth.observations import ROOT, Edge, read_records
from tests.functional.truth.recorder import compile_recorder

pytestmark = pytest.mark.torch

Run = Callable[[str], tuple[dict[Edge, int], dict[tuple[str, tuple[str, ...]], int], object]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Run one case of recorder_cases.py: the edges, the outermost calls, and what the case itself saw."""
    install: TorchInstall = find_torch()
    folder = tmp_path_factory.mktemp("recorder")
    recorder = compile_recorder(install, folder)
    script = Path(__file__).with_name("recorder_cases.py")
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))

    def run_case(name: str) -> tuple[dict[Edge, int], dict[tuple[str, tuple[str, ...]], int], object]:
        records = folder / f"{name}.tsv"
        request = {"recorder": str(recorder), "case": name, "records": str(records)}
        answer = run_child(install.python, script, request, environment={"PYTHONPATH": path}, timeout=300)
        return (*read_records([records]), json.loads(answer))

    return run_case


def pairs(edges: dict[Edge, int]) -> set[tuple[str, str]]:
    return {(edge.parent, edge.child) for edge in edges}


def test_a_chain_of_overloads_of_one_name_is_complete(run: Run) -> None:
    edges, outermost, _ = run("chain")
    assert pairs(edges) == {
        ("aten::add.Scalar", "aten::add.Tensor"),
        ("aten::add.Tensor", "aten::to.dtype"),
        ("aten::to.dtype", "aten::_to_copy"),
        ("aten::_to_copy", "aten::empty_strided"),
        ("aten::_to_copy", "aten::copy_"),
    }
    assert outermost == {("aten::add.Scalar", ()): 1}


def test_operators_that_torch_never_observes_are_seen(run: Run) -> None:
    _, outermost, _ = run("unobserved")
    assert {name for name, _ in outermost} == {"aten::size.int", "aten::is_leaf", "aten::_version", "aten::is_complex"}


def test_after_an_error_the_next_call_is_outermost(run: Run) -> None:
    edges, outermost, _ = run("error")
    assert outermost == {("aten::matmul", ()): 1, ("aten::relu", ()): 1}
    assert ("aten::matmul", "aten::mm") in pairs(edges)
    assert not any(edge.child == "aten::relu" for edge in edges)


def test_work_on_pool_threads_belongs_to_the_operator_that_gave_it_out(run: Run) -> None:
    edges, outermost, threads = run("threads")
    assert threads == 2
    assert {name for name, _ in outermost} == {"aten::slow_conv_transpose2d"}
    selects = {edge: count for edge, count in edges.items() if edge.child == "aten::select.int"}
    assert [edge.parent for edge in selects] == ["aten::slow_conv_transpose2d"]


def test_script_dispatches_with_overloads(run: Run) -> None:
    _, outermost, _ = run("script")
    assert {("aten::add.Tensor", ()), ("aten::sum.dim_IntList", ()), ("aten::item", ())} <= outermost.keys()


def test_what_a_call_needs_beyond_dense_tensors_is_told(run: Run) -> None:
    edges, outermost, _ = run("needs")
    needs = {(name, need) for name, found in outermost for need in found}
    assert {
        ("aten::mul.Tensor", "conjugate"),
        ("aten::dequantize.self", "quantized"),
        ("quantized::linear_dynamic", "quantized"),
        ("aten::sin", "sparse"),
        ("aten::relu", "mkldnn"),
        ("aten::neg", "nested"),
        ("aten::mm", "grad"),
        ("aten::empty.memory_format", "sparse"),
    } <= needs
    assert Edge("aten::mm", "aten::mm", ("backward",)) in edges


def test_it_agrees_with_the_raw_events_of_the_profiler(run: Run) -> None:
    """An independent judge: kineto's events, nested by their times. They have no keys and lose pool threads."""
    edges, _, by_times = run("profiler")
    assert len(edges) > 150
    assert pairs(edges) == {(parent, child) for parent, child in by_times}
