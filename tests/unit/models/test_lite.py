from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models import ModelNeeds, read_model

from .files import LITE, LITE_FLATBUFFER, TINY_CODE, script_members, unzipped, write

# As torch.jit.mobile._export_operator_list lists them (tests/data/models/make_models.py prints it).
LISTED = {
    "aten::Bool.Tensor",
    "aten::add.Scalar",
    "aten::gt.Scalar",
    "aten::linear",
    "aten::select.int",
    "aten::size.int",
    "aten::slice.Tensor",
    "aten::sum",
}


def function(
    name: object = "__torch__.Net.forward",
    instructions: object = (("OP", 0, 0), ("RET", 0, 0)),
    operators: object = (("aten::relu", ""),),
    types: object = (),
) -> tuple[object, ...]:
    fields = (("instructions", instructions), ("operators", operators), ("constants", ()), ("types", types))
    return (name, fields)


def read(tmp_path: Path, *content: object, version: str = "10", **members: bytes) -> ModelNeeds:
    named = {name.replace("_pkl", ".pkl"): data for name, data in members.items()}
    path = write(tmp_path / "m.ptl", {"bytecode.pkl": pickle.dumps(content, 2), "version": version, **named})
    return read_model(path)


@pytest.mark.parametrize("path", [LITE, LITE_FLATBUFFER], ids=["zip", "flatbuffer"])
def test_the_operators_are_those_that_pytorch_lists(path: Path) -> None:
    needs = read_model(path)
    assert {str(root.name) for root in needs.roots} == LISTED
    assert not any(root.all_overloads for root in needs.roots)
    assert needs.methods == ("__torch__.Lite.forward", "__torch__.Lite.size")


def test_both_containers_tell_the_same() -> None:
    def uses(path: Path) -> list[tuple[str, str, str]]:
        return [
            (str(root.name), use.method, use.place.partition(":")[2])
            for root in read_model(path).roots
            for use in root.uses
        ]

    assert uses(LITE) == uses(LITE_FLATBUFFER)


def test_a_use_is_the_instruction_that_calls(tmp_path: Path) -> None:
    instructions = (("LOAD", 0, 0), ("OP", 0, 0), ("OPN", 1, 2), ("OP", 0, 0))
    needs = read(
        tmp_path, 8, function(instructions=instructions, operators=(("aten::relu", "", 1), ("aten::add", "Tensor", 2)))
    )
    assert {str(root.name): [use.place for use in root.uses] for root in needs.roots} == {
        "aten::add.Tensor": ["bytecode.pkl:2"],
        "aten::relu": ["bytecode.pkl:1", "bytecode.pkl:3"],
    }


def test_an_operator_that_nothing_calls_is_needed_to_load_the_file(tmp_path: Path) -> None:
    needs = read(tmp_path, 8, function(instructions=(("RET", 0, 0),)))
    assert [str(root.name) for root in needs.roots] == ["aten::relu"]


def test_custom_classes_come_from_types_and_from_the_data(tmp_path: Path) -> None:
    data = b"\x80\x02c__torch__.torch.classes.rnn\nCellParamsBase\n)\x81."
    needs = read(tmp_path, 8, function(types=("List[__torch__.torch.classes.my.Thing]", "Tensor")), data_pkl=data)
    assert needs.custom_classes == ("__torch__.torch.classes.my.Thing", "__torch__.torch.classes.rnn.CellParamsBase")


def test_an_old_file_needs_what_pytorch_makes_of_it(tmp_path: Path) -> None:
    changed = function(operators=(("aten::div", "Tensor"),))
    old = {str(root.name) for root in read(tmp_path, 4, changed, version="3").roots}
    assert old == {"aten::div.Tensor", "aten::div.Tensor_mode", "aten::is_floating_point"}
    assert {str(root.name) for root in read(tmp_path, 4, changed, version="4").roots} == {"aten::div.Tensor"}


def test_operators_that_only_the_code_beside_the_bytecode_calls_are_noted(tmp_path: Path) -> None:
    code = {name: data for name, data in script_members().items() if name != "version"}
    bytecode = pickle.dumps((8, function()), 2)
    path = write(tmp_path / "m.ptl", {**code, "bytecode.pkl": bytecode, "version": "10"})
    assert read_model(path).notes == ()
    operators = "".join(f"torch.sin{number}(x), " for number in range(12))
    code["code/__torch__.py"] = TINY_CODE.replace("torch.relu(x)", f"[torch.relu(x), {operators}]")
    path = write(tmp_path / "m.ptl", {**code, "bytecode.pkl": bytecode, "version": "10"})
    [note] = read_model(path).notes
    assert "aten::sin0, aten::sin1, aten::sin10, aten::sin11, aten::sin2" in note
    assert note.endswith("aten::sin7 and 2 more.")
    assert "relu" not in note


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ((), "a top level that is no list of 1 or more values"),
        ((2, function()), "bytecode version 2 is unknown"),
        ((10, function()), "bytecode version 10 is unknown"),
        ((True, function()), "bytecode version True is unknown"),
        (("8", function()), "bytecode version 8 is unknown"),
        ((8, 5), "a function that is no list of 2"),
        ((8, ("name",)), "a function that is no list of 2"),
        ((8, function(name=5)), "a function without a name"),
        ((8, ("f", 5)), "a function body that is no list"),
        ((8, ("f", ())), "code without operators"),
        ((8, function(operators=5)), "operators that is no list"),
        ((8, function(operators=(("aten::relu",),))), "an operator that is no list of 2"),
        ((8, function(operators=((5, ""),))), "an operator without a name"),
        ((8, function(operators=(("relu", ""),))), "'relu' is not an operator name"),
        ((8, function(operators=(("aten::re lu", ""),))), "is not an operator name"),
        ((8, function(instructions=(("OP", "0", 0),))), "instruction 0 without an operator"),
        ((8, function(instructions=(("OP", 1, 0),))), "instruction 0 calls operator 1 of 1"),
        ((8, function(instructions=(("OP", -1, 0),))), "instruction 0 calls operator -1 of 1"),
        ((8, function(instructions=(5,))), "an instruction that is no list"),
        ((8, function(), function()), "two functions of this name"),
    ],
)
def test_malformed_bytecode_is_refused_with_the_reason(
    tmp_path: Path, content: tuple[object, ...], reason: str
) -> None:
    with pytest.raises(InvalidModel) as caught:
        read(tmp_path, *content)
    assert reason in str(caught.value)
    assert "bytecode.pkl" in str(caught.value)


def test_bytecode_that_contains_itself_is_refused(tmp_path: Path) -> None:
    cyclic: list[object] = [8]
    cyclic.append(cyclic)
    path = write(tmp_path / "m.ptl", {"bytecode.pkl": pickle.dumps(cyclic, 2), "version": "8"})
    with pytest.raises(InvalidModel, match="a function without a name"):
        read_model(path)


def test_a_list_shared_by_many_functions_cannot_multiply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsieve.models.collect.MAX_USES", 1000)
    shared = tuple(("OP", 0, 0) for _ in range(100))
    with pytest.raises(InvalidModel, match="calls too many operators"):
        read(tmp_path, 8, *(function(name=f"f{number}", instructions=shared) for number in range(100)))


def test_the_weights_of_a_lite_model_are_not_read(tmp_path: Path) -> None:
    members = unzipped(LITE)
    path = write(tmp_path / "m.ptl", members)
    expected = read_model(path)
    content = path.read_bytes()
    for name, data in members.items():
        if name.startswith("data/"):
            content = content.replace(data, bytes(len(data)))
    assert content != path.read_bytes()
    path.write_bytes(content)
    assert read_model(path) == expected
