from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.graph.op_graph import OpGraph
from opsieve.installed import TorchInstall
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.operators import OperatorName
from opsieve.select.choose import ExtraOperator, choose
from opsieve.select.selection import RuntimeIdentity, Selection
from opsieve.select.store import selection_to_json
from tests.functional.cli.conftest import Result, fits

pytestmark = pytest.mark.torch
Opsieve = Callable[..., Result]


@pytest.fixture(scope="module")
def selection(cached_graph: OpGraph, torch_install: TorchInstall) -> Selection:
    roots = tuple(
        RootOperator(OperatorName.parse(name), False, Reach.DISPATCHER, (Use("__torch__.Net.forward", "code:1"),))
        for name in ("aten::linear", "aten::relu")
    )
    model = ModelNeeds("net.ptl", "lite", "f00d", roots, ("forward",), ())
    extra = ExtraOperator(OperatorName("aten", "layer_norm"), False, "--op")
    return choose(cached_graph, torch_install.version, [model], [extra])[0]


@pytest.fixture
def folder(selection: Selection, tmp_path: Path) -> Path:
    (tmp_path / "selection.json").write_bytes(selection_to_json(selection))
    return tmp_path


def test_an_operator_that_is_there(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::addmm", folder)
    assert result.status == 0
    assert result.err == ""
    assert fits(result.out)
    assert result.out.startswith("net.ptl: __torch__.Net.forward\n  -> aten::linear\n    -> aten::addmm\n\n")
    assert "Without it, " in result.out


def test_the_same_as_json(opsieve: Opsieve, folder: Path) -> None:
    found = opsieve("why", "aten::addmm", folder / "selection.json", "--format", "json").json
    assert found["operator"] == "aten::addmm"
    assert found["present"] is True
    assert found["chains"][0] == {
        "asked_by": {"kind": "model", "source": "net.ptl", "place": "__torch__.Net.forward"},
        "operators": ["aten::linear", "aten::addmm"],
    }
    assert "aten::addmm" in found["cost"]["operators"]
    assert found["cost"]["code_bytes"] > 10_000


def test_few_chains_unless_all_are_asked_for(opsieve: Opsieve, folder: Path) -> None:
    few, all_of_them = (
        opsieve("why", "aten::empty.memory_format", folder),
        opsieve("why", "aten::empty.memory_format", folder, "--all"),
    )
    chains = opsieve("why", "aten::empty.memory_format", folder, "--format", "json").json["chains"]
    assert len(chains) > 5
    assert f"... and {len(chains) - 5} more roots need it; --all shows them." in few.out
    assert all_of_them.out.count("-> aten::empty.memory_format\n") == len(chains)
    assert few.out.count("-> aten::empty.memory_format\n") == 5


def test_the_code_of_each_step(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::addmm", folder, "--code")
    assert "aten::linear calls aten::addmm through\n" in result.out
    assert "  at::native::linear(" in result.out
    (step,) = opsieve("why", "aten::addmm", folder, "--code", "--format", "json").json["code"]
    assert (step["from"], step["to"]) == ("aten::linear", "aten::addmm")
    assert step["functions"][-1].startswith("at::_ops::addmm::call(")


def test_an_operator_that_an_option_asked_for(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::layer_norm", folder)
    assert result.status == 0
    assert "asked for by --op\n  -> aten::layer_norm\n" in result.out


def test_an_operator_that_is_not_there(opsieve: Opsieve, folder: Path, selection: Selection) -> None:
    assert "aten::lstm.input" not in selection.names
    result = opsieve("why", "aten::lstm.input", folder)
    assert result.status == 1
    assert fits(result.out)
    assert result.out.startswith("aten::lstm.input is not in this runtime: ")
    assert "opsieve build ... --op aten::lstm.input\n" in result.out
    found = opsieve("why", "aten::lstm.input", folder, "--format", "json")
    assert found.status == 1
    assert found.json["present"] is False
    assert set(found.json["cost"]["operators"]) >= {"aten::lstm.input", "aten::_thnn_fused_lstm_cell"}
    assert not set(found.json["cost"]["operators"]) & selection.names


def test_what_is_no_question(opsieve: Opsieve, folder: Path, selection: Selection, tmp_path: Path) -> None:
    assert opsieve("why", "aten::lineer", folder).fails("no operator aten::lineer")
    assert opsieve("why", "linear", folder).fails("'linear' is not an operator name")
    assert opsieve("why", "aten::linear", tmp_path / "missing").fails("does not exist")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert opsieve("why", "aten::linear", empty).fails("cannot read the selection", str(empty / "selection.json"))
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    assert opsieve("why", "aten::linear", broken).fails("this is no selection", str(broken))
    stale = replace(selection, runtime=RuntimeIdentity("2.13.0", "ff" * 20))
    broken.write_bytes(selection_to_json(stale))
    assert opsieve("why", "aten::linear", broken).fails("another library", "build again")
