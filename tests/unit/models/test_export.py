from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opsieve.errors import InvalidModel
from opsieve.models import ModelNeeds, Reach, read_model

from .files import BRANCHES, write


def node(target: str, **argument: Any) -> dict[str, Any]:
    return {"target": target, "inputs": [{"name": "x", "arg": argument or {"as_none": True}}], "outputs": []}


def graph(*nodes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"nodes": list(nodes), "inputs": [], "outputs": [], **more}


def program(*nodes: dict[str, Any], outputs: tuple[dict[str, Any], ...] = (), major: int = 8) -> dict[str, Any]:
    return {
        "graph_module": {"graph": graph(*nodes), "signature": {"input_specs": [], "output_specs": list(outputs)}},
        "schema_version": {"major": major, "minor": 20},
    }


def read(tmp_path: Path, content: object, member: str = "models/model.json") -> ModelNeeds:
    text = content if isinstance(content, str | bytes) else json.dumps(content)
    return read_model(write(tmp_path / "m.pt2", {member: text, "archive_format": "pt2"}))


def names(needs: ModelNeeds) -> list[str]:
    return [str(root.name) for root in needs.roots]


def test_a_real_program_with_nested_graphs() -> None:
    needs = read_model(BRANCHES)
    assert needs.format == "export"
    assert names(needs) == [
        "aten::add.Tensor",
        "aten::copy_",
        "aten::cos",
        "aten::gt.Scalar",
        "aten::sin",
        "aten::sum",
        "aten::sym_size.int",
        "aten::view",
        "higher_order::cond",
    ]
    assert needs.methods == ("model", "model.false_graph_0", "model.true_graph_0")
    assert not any(root.all_overloads for root in needs.roots)
    assert [str(root.name) for root in needs.roots if root.reach is Reach.INTERPRETER] == ["higher_order::cond"]


def test_uses_name_graph_and_node(tmp_path: Path) -> None:
    inner = {"name": "body", "graph": graph(node("torch.ops.aten.sin.default"))}
    needs = read(tmp_path, program(node("_operator.mul"), node("torch.ops.higher_order.cond", as_graph=inner)))
    assert [(str(root.name), root.uses[0].method, root.uses[0].place) for root in needs.roots] == [
        ("aten::sin", "model.body", "models/model.json:0"),
        ("higher_order::cond", "model", "models/model.json:1"),
    ]


def test_python_functions_on_sizes_are_no_operators(tmp_path: Path) -> None:
    assert names(read(tmp_path, program(node("_operator.mul"), node("math.floor")))) == []


def test_an_operator_as_an_argument_counts(tmp_path: Path) -> None:
    made = program(node("torch.ops.higher_order.auto_functionalized", as_operator="torch.ops.mylib.foo.default"))
    assert names(read(tmp_path, made)) == ["higher_order::auto_functionalized", "mylib::foo"]


def test_graphs_inside_of_dictionaries_count(tmp_path: Path) -> None:
    inner = {"as_graph": {"name": "g", "graph": graph(node("torch.ops.aten.exp.default"))}}
    assert "aten::exp" in names(read(tmp_path, program(node("_operator.x", as_string_to_argument={"a": inner}))))


def test_custom_objects_are_listed(tmp_path: Path) -> None:
    value = {"name": "obj", "class_fqn": "__torch__.torch.classes.my.Thing"}
    other = {"name": "obj2", "class_fqn": "__torch__.torch.classes.my.Other"}
    made = program(node("torch.ops.higher_order.call_torchbind", as_custom_obj=value))
    made["graph_module"]["graph"]["custom_obj_values"] = {"obj2": other}
    assert read(tmp_path, made).custom_classes == (
        "__torch__.torch.classes.my.Other",
        "__torch__.torch.classes.my.Thing",
    )


@pytest.mark.parametrize("kind", ["buffer_mutation", "user_input_mutation", "parameter_mutation"])
def test_a_changed_input_is_copied_back(tmp_path: Path, kind: str) -> None:
    needs = read(tmp_path, program(outputs=({"user_output": {}}, {kind: {"arg": {"name": "x"}}})))
    [root] = needs.roots
    assert str(root.name) == "aten::copy_"
    assert root.uses[0].place == "models/model.json:output 1"


def test_an_output_that_changes_nothing_is_not_copied(tmp_path: Path) -> None:
    assert names(read(tmp_path, program(outputs=({"user_output": {}},)))) == []


def test_several_programs_in_one_package(tmp_path: Path) -> None:
    members = {
        f"models/{name}.json": json.dumps(program(node(f"torch.ops.aten.{name}.default"))) for name in ("sin", "cos")
    }
    needs = read_model(write(tmp_path / "m.pt2", members))
    assert names(needs) == ["aten::cos", "aten::sin"]
    assert needs.methods == ("cos", "sin")


def test_the_layout_before_pytorch_2_7(tmp_path: Path) -> None:
    content = json.dumps(program(node("torch.ops.aten.sin.default"), major=5))
    path = write(tmp_path / "m.pt2", {"version": "5.1", "serialized_exported_program.json": content}, top="")
    assert names(read_model(path)) == ["aten::sin"]


def test_bare_infinities_of_old_files_are_accepted(tmp_path: Path) -> None:
    text = json.dumps(program(node("torch.ops.aten.clamp.default", as_float=float("inf"))))
    assert "Infinity" in text
    assert names(read(tmp_path, text)) == ["aten::clamp"]


def test_a_newer_schema_is_noted(tmp_path: Path) -> None:
    assert "schema version 9" in read(tmp_path, program(major=9)).notes[0]
    assert read(tmp_path, program(major=8)).notes == ()


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff", b'{"graph_module": 5}', json.dumps({"schema_version": {"major": 8}}).encode()],
)
def test_what_is_no_program_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InvalidModel, match="no exported program") as caught:
        read(tmp_path, content)
    assert "models/model.json" in str(caught.value)


@pytest.mark.parametrize(
    "target", ["torch.ops.", "torch.ops.aten", "torch.ops.aten.a b.default", "torch.ops.aten.x.y.z"]
)
def test_a_target_that_names_no_operator_is_refused(tmp_path: Path, target: str) -> None:
    with pytest.raises(InvalidModel, match="is not an operator name") as caught:
        read(tmp_path, program(node(target)))
    assert "models/model.json:0" in str(caught.value)


def nested_graphs(depth: int) -> str:
    opening = '{"name":"g","graph":{"nodes":[{"target":"torch.ops.aten.sin.default","inputs":[{"arg":{"as_graph":'
    nested = opening * depth + '{"name":"g","graph":{"nodes":[]}}' + "}}]}]}}" * depth
    return json.dumps(program(node("torch.ops.higher_order.cond", as_graph="HERE"))).replace('"HERE"', nested)


def nested_dictionaries(depth: int) -> str:
    nested = '{"as_string_to_argument":{"a":' * depth + '{"as_operator":"torch.ops.aten.sin.default"}' + "}}" * depth
    return json.dumps(program(node("_operator.x", as_operator="HERE"))).replace('{"as_operator": "HERE"}', nested)


@pytest.mark.parametrize("text", [nested_graphs(50), nested_dictionaries(200)])
def test_deep_nesting_is_read(tmp_path: Path, text: str) -> None:
    assert "aten::sin" in names(read(tmp_path, text))


@pytest.mark.parametrize("text", [nested_graphs(50_000), nested_dictionaries(50_000), "[" * 1_000_000])
def test_endless_nesting_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidModel, match="no exported program"):
        read(tmp_path, text)
