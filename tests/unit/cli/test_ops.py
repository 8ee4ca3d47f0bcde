from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opsieve.cli.main import run
from tests.unit.models.files import BRANCHES, EVERYTHING, LITE, LITE_FLATBUFFER, WEIGHTS, script_members, write


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert run(["ops", "--no-torch", *map(str, arguments)]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_table_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, LITE).splitlines()
    assert lines[0] == f"{LITE}: lite, 2 methods"
    assert lines[1] == "7 operators of the dispatcher, 1 of the interpreter only"
    assert lines[3].split() == ["operator", "reach", "uses", "methods"]
    assert lines[5].split() == ["aten::add.Scalar", "dispatcher", "1", "1"]
    assert lines[12].split() == ["aten::Bool.Tensor", "interpreter", "1", "1"]


def test_base_names_are_marked_and_explained(capsys: pytest.CaptureFixture[str]) -> None:
    table = printed(capsys, EVERYTHING)
    assert "aten::linear.* " in table
    assert "note: TorchScript names no overloads" in table


def test_exact_overloads_need_no_explanation(capsys: pytest.CaptureFixture[str]) -> None:
    assert "note:" not in printed(capsys, LITE)


def test_several_models_one_table_each(capsys: pytest.CaptureFixture[str]) -> None:
    table = printed(capsys, LITE, BRANCHES)
    assert table.index(str(LITE)) < table.index(str(BRANCHES))
    assert table.count("operator  ") == 2


def test_notes_of_the_reader_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no checksums" in printed(capsys, LITE_FLATBUFFER)


@pytest.mark.parametrize(
    ("reach", "kept", "left_out"),
    [("dispatcher", "aten::sum", "aten::Bool"), ("interpreter", "aten::Bool", "aten::sum")],
)
def test_one_reach_only(capsys: pytest.CaptureFixture[str], reach: str, kept: str, left_out: str) -> None:
    table = printed(capsys, LITE, "--reach", reach)
    assert kept in table
    assert left_out not in table


def test_by_method(capsys: pytest.CaptureFixture[str]) -> None:
    table = printed(capsys, LITE, "--by-method")
    forward, size = table.split("__torch__.Lite.size")
    assert "__torch__.Lite.forward" in forward
    assert "bytecode.pkl:" in forward
    assert "aten::size.int" in size
    assert "aten::linear" not in size


def as_json(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(printed(capsys, *arguments, "--format", "json"))
    return result


def test_json_holds_everything(capsys: pytest.CaptureFixture[str]) -> None:
    [model] = as_json(capsys, LITE)["models"]
    assert model["path"] == str(LITE)
    assert model["format"] == "lite"
    assert model["methods"] == ["__torch__.Lite.forward", "__torch__.Lite.size"]
    assert model["fingerprint"].startswith("zip-crc:")
    assert model["notes"] == model["custom_classes"] == []
    [operator] = [entry for entry in model["operators"] if entry["name"] == "aten::add"]
    [use] = operator.pop("uses")
    assert operator == {"name": "aten::add", "overload": "Scalar", "all_overloads": False, "reach": "dispatcher"}
    assert use["method"] == "__torch__.Lite.forward"


def test_json_tells_all_overloads_from_the_default_one(capsys: pytest.CaptureFixture[str]) -> None:
    text, exact = as_json(capsys, EVERYTHING, LITE)["models"]
    assert [entry["overload"] for entry in text["operators"] if entry["name"] == "aten::linear"] == [None]
    assert [entry["overload"] for entry in exact["operators"] if entry["name"] == "aten::linear"] == [""]


def test_json_is_sorted_and_repeatable(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = as_json(capsys, BRANCHES), as_json(capsys, BRANCHES)
    assert first == second
    names = [entry["name"] for entry in first["models"][0]["operators"]]
    assert names == sorted(names)


def test_a_file_without_code_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", str(LITE), str(WEIGHTS)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"error: {WEIGHTS}: ")


def test_control_characters_of_a_model_do_not_reach_the_terminal(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = "class N(Module):\n  def f(self) -> int:\n    return torch.len(x)\n"
    members = {**script_members(), "code/__torch__/a\x1b[2J.py": code}
    assert "\x1b" not in printed(capsys, write(tmp_path / "m", members), "--by-method")


def test_an_interpreter_without_torch_is_told_if_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ops", str(EVERYTHING), "--python", "/bin/false"]) == 2
    assert "error:" in capsys.readouterr().err
