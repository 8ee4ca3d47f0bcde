"""Choosing on an operator graph made by hand: `model` calls `first`, which needs `second`, which needs `third`."""

from __future__ import annotations

import pytest

from opsieve.errors import UnknownOperator
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.operators import OperatorName
from opsieve.select.choose import ExtraOperator, choose
from opsieve.select.selection import ModelIdentity, Reason, ReasonKind, RuntimeIdentity, Selection
from tests.unit.graph.examples import op_graph

KERNELS = {
    ("aten::first", "CPU"): [0],
    ("aten::second", "CPU"): [2],
    ("aten::third", "CPU"): [4],
    ("aten::third.out", "CPU"): [4],
    ("aten::lonely", "CPU"): [6],
    ("aten::clone", "CPU"): [7],
    ("quantized::linear", "CPU"): [7],
    ("aten::first", "QuantizedCPU"): [9],
    ("_::*", "Conjugate"): [8],
    ("aten::empty.memory_format", "CPU"): [7],
    ("aten::mm", "CPU"): [7],
    ("aten::len.t", "Interpreter"): [10],
    ("aten::len.str", "Interpreter"): [11],
}
ENTRIES = {1: "aten::second", 3: "aten::third", 5: "aten::clone", 12: "aten::lonely"}
EDGES = [(0, 1), (2, 3), (8, 5), (9, 12), (11, 12)]


@pytest.fixture
def graph() -> OpGraph:
    return op_graph(13, EDGES, KERNELS, ENTRIES)


def root(name: str, *methods: str, all_overloads: bool = False, reach: Reach = Reach.DISPATCHER) -> RootOperator:
    uses = tuple(Use(method, f"code.py:{number}") for number, method in enumerate(methods or ("forward",)))
    return RootOperator(OperatorName.parse(name), all_overloads, reach, uses)


def model(*roots: RootOperator, kind: str = "lite", classes: tuple[str, ...] = ()) -> ModelNeeds:
    return ModelNeeds("net.pt", kind, "f00d", tuple(roots), ("forward",), classes)


def reasons(selection: Selection) -> dict[str, set[tuple[str, str]]]:
    """Operator -> (kind, source) of its reasons, without those of the framework."""
    return {
        str(operator.name): {(str(r.kind), r.source) for r in operator.reasons if r.kind is not ReasonKind.FRAMEWORK}
        for operator in selection.operators
    }


def test_the_closure_is_selected_with_a_reason_for_each(graph: OpGraph) -> None:
    selection, dependencies = choose(graph, "2.13.0", [model(root("aten::first", "forward", "encode", "forward"))])
    assert reasons(selection) == {
        "aten::first": {("model", "net.pt")},
        "aten::second": {("dependency", "aten::first")},
        "aten::third": {("dependency", "aten::second")},
        "aten::clone": {("any-operator", "")},
        "aten::empty.memory_format": set(),
    }
    (first,) = (operator for operator in selection.operators if str(operator.name) == "aten::first")
    assert first.reasons == (
        Reason(ReasonKind.MODEL, "net.pt", "encode"),
        Reason(ReasonKind.MODEL, "net.pt", "forward"),
    )
    assert selection.runtime == RuntimeIdentity("2.13.0", graph.build_id)
    assert selection.models == (ModelIdentity("net.pt", "lite", "f00d"),)
    assert selection.scopes == ("inference",)
    assert selection.missing == ()
    assert dependencies.scopes == {Scope.INFERENCE}


def test_what_pytorch_itself_calls_is_always_in(graph: OpGraph) -> None:
    selection, _ = choose(graph, "2.13.0", [model(root("aten::lonely"))])
    (empty,) = (operator for operator in selection.operators if str(operator.name) == "aten::empty.memory_format")
    assert {reason.kind for reason in empty.reasons} == {ReasonKind.FRAMEWORK}
    assert "aten::mm" not in selection.names


def test_torchscript_brings_what_its_executor_puts_in(graph: OpGraph) -> None:
    selection, _ = choose(graph, "2.13.0", [model(root("aten::lonely"), kind="torchscript")])
    assert "aten::mm" in selection.names


def test_a_base_name_stands_for_all_overloads(graph: OpGraph) -> None:
    selection, _ = choose(graph, "2.13.0", [model(root("aten::third", all_overloads=True))])
    assert {"aten::third", "aten::third.out"} <= selection.names
    selection, _ = choose(graph, "2.13.0", [model(root("aten::third"))])
    assert "aten::third.out" not in selection.names


def test_an_interpreter_operator_whose_code_is_unknown_counts_for_its_whole_name(graph: OpGraph) -> None:
    selection, _ = choose(graph, "2.13.0", [model(root("aten::len.t", reach=Reach.INTERPRETER))])
    assert "aten::len.t" in selection.names
    assert "aten::len.str" not in selection.names
    selection, _ = choose(graph, "2.13.0", [model(root("aten::len.Dict", reach=Reach.INTERPRETER))])
    assert {"aten::len.t", "aten::len.str", "aten::lonely"} <= selection.names
    selection, _ = choose(graph, "2.13.0", [model(root("prim::unknown", reach=Reach.INTERPRETER))])
    assert selection.missing == ()


def test_operators_that_the_runtime_lacks_are_told(graph: OpGraph) -> None:
    selection, _ = choose(graph, "2.13.0", [model(root("torchvision::nms"), root("aten::first"))])
    (missing,) = selection.missing
    assert str(missing.name) == "torchvision::nms"
    assert missing.reasons == (Reason(ReasonKind.MODEL, "net.pt", "forward"),)
    assert "torchvision::nms" not in selection.names


@pytest.mark.parametrize(
    "found",
    [
        model(root("quantized::linear")),
        model(root("aten::dequantize.self"), root("aten::first")),
        model(root("aten::first"), classes=("__torch__.torch.classes.quantized.LinearPackedParamsBase",)),
        model(root("aten::first"), classes=("__torch__.torch.classes.rnn.CellParamsBase",)),
    ],
)
def test_quantized_models_widen_the_scope(graph: OpGraph, found: ModelNeeds) -> None:
    selection, dependencies = choose(graph, "2.13.0", [found])
    assert selection.scopes == ("inference", "quantized")
    assert Scope.QUANTIZED in dependencies.scopes


def test_a_scope_brings_what_its_kernels_need(graph: OpGraph) -> None:
    wide, _ = choose(graph, "2.13.0", [model(root("aten::first"))], (), frozenset({Scope.INFERENCE, Scope.QUANTIZED}))
    assert ("dependency", "aten::first") in reasons(wide)["aten::lonely"]


def test_options_add_operators(graph: OpGraph) -> None:
    extra = [
        ExtraOperator(OperatorName("aten", "third"), True, "ops.txt:3"),
        ExtraOperator(OperatorName("aten", "second"), False, "--op"),
    ]
    selection, _ = choose(graph, "2.13.0", [], extra)
    found = reasons(selection)
    assert found["aten::third.out"] == {("option", "ops.txt:3")}
    assert found["aten::second"] == {("option", "--op")}
    assert ("option", "ops.txt:3") in found["aten::third"]


@pytest.mark.parametrize(
    ("name", "all_overloads", "expected"),
    [
        ("aten::third.Tensor", False, "aten::third, aten::third.out"),
        ("aten::secnd", True, "aten::second"),
        ("other::unheard_of", True, ""),
    ],
)
def test_an_unknown_option_is_answered_with_what_is_near(
    graph: OpGraph, name: str, all_overloads: bool, expected: str
) -> None:
    extra = ExtraOperator(OperatorName.parse(name), all_overloads, "ops.txt:7")
    with pytest.raises(UnknownOperator, match=f"no operator {name}") as fault:
        choose(graph, "2.13.0", [], [extra])
    assert fault.value.where == "ops.txt:7"
    assert (fault.value.expected or "").startswith(expected)
    assert bool(fault.value.expected) == bool(expected)


def test_models_together_are_the_merge_of_each(graph: OpGraph) -> None:
    one, other = model(root("aten::first")), ModelNeeds("b.pt", "export", "beef", (root("aten::lonely"),), (), ())
    both, _ = choose(graph, "2.13.0", [one, other])
    apart = choose(graph, "2.13.0", [one])[0].merge(choose(graph, "2.13.0", [other])[0])
    assert both.names == apart.names
    assert both.models == apart.models
