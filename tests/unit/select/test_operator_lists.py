from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.errors import InvalidFile, UnknownOperator
from opsieve.operators import OperatorName
from opsieve.select.choose import ExtraOperator
from opsieve.select.operator_lists import from_file, from_option


@pytest.mark.parametrize(
    ("text", "name", "all_overloads"),
    [
        ("aten::add", OperatorName("aten", "add"), True),
        ("aten::add.Tensor", OperatorName("aten", "add", "Tensor"), False),
        ("aten::relu.default", OperatorName("aten", "relu"), False),
        ("a::b::c", OperatorName("a::b", "c"), True),
    ],
)
def test_a_name_without_overload_means_all_of_them(text: str, name: OperatorName, all_overloads: bool) -> None:
    assert from_option(text) == ExtraOperator(name, all_overloads, "--op")


@pytest.mark.parametrize("text", ["", "add", "aten::", "aten::add.", "aten::a b", "--op", "aten::add(Tensor x)"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UnknownOperator, match="is not an operator name"):
        from_option(text)


def test_files_hold_one_operator_a_line_or_a_yaml_list(tmp_path: Path) -> None:
    file = tmp_path / "ops.txt"
    file.write_text(
        "# what the app calls\n"
        "aten::add.Tensor\n"
        "\n"
        "   aten::mul   # all overloads\r\n"
        "- aten::relu.default\n"
        '- "aten::cat"\n'
        "-\n"
    )
    assert [(str(extra.name), extra.all_overloads, extra.source) for extra in from_file(file)] == [
        ("aten::add.Tensor", False, f"{file}:2"),
        ("aten::mul", True, f"{file}:4"),
        ("aten::relu", False, f"{file}:5"),
        ("aten::cat", True, f"{file}:6"),
    ]


def test_the_line_of_a_fault_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ops.txt"
    file.write_text("aten::add\nnot an operator\n")
    with pytest.raises(InvalidFile, match="'not an operator' is not an operator name") as fault:
        from_file(file)
    assert fault.value.where == f"{file}:2"


@pytest.mark.parametrize("contents", [b"\xff\xfe\x00", None])
def test_files_that_cannot_be_read_are_refused(tmp_path: Path, contents: bytes | None) -> None:
    file = tmp_path / "ops.txt"
    if contents is not None:
        file.write_bytes(contents)
    with pytest.raises(InvalidFile, match="cannot read the operator list"):
        from_file(file)


def test_a_list_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "ops.txt"
    with file.open("wb") as stream:
        stream.truncate(17 << 20)
    with pytest.raises(InvalidFile, match="too large"):
        from_file(file)
