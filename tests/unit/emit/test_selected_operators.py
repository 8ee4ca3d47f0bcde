from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from opsieve.emit.selected_operators import selected_operators_yaml
from opsieve.operators import OperatorName
from opsieve.select.selection import Reason, ReasonKind, SelectedOperator, Selection
from tests.unit.select.examples import RUNTIME, selections

EXAMPLE = Selection(
    RUNTIME,
    ("inference",),
    (),
    (
        SelectedOperator(OperatorName("aten", "add", "Tensor"), (Reason(ReasonKind.MODEL, "m.pt"),)),
        SelectedOperator(OperatorName("aten", "empty"), (Reason(ReasonKind.DEPENDENCY, "aten::add.Tensor"),)),
    ),
    (SelectedOperator(OperatorName("torchvision", "nms"), (Reason(ReasonKind.MODEL, "m.pt"),)),),
)


def test_an_example() -> None:
    def operator(root: str) -> str:
        return f"    include_all_overloads: false\n    is_root_operator: {root}\n    is_used_for_training: false\n"

    assert selected_operators_yaml(EXAMPLE) == (
        "build_features: []\n"
        "custom_classes: []\n"
        "include_all_non_op_selectives: true\n"
        "include_all_operators: false\n"
        "kernel_metadata: {}\n"
        "operators:\n"
        f"  aten::add.Tensor:\n{operator('true')}"
        f"  aten::empty:\n{operator('false')}"
        f"  torchvision::nms:\n{operator('true')}"
    )


@pytest.mark.parametrize(
    ("scopes", "training"),
    [(("inference",), False), (("autograd", "inference"), True), (("all",), True), (("sparse", "quantized"), False)],
)
def test_training_scopes_mark_their_operators(scopes: tuple[str, ...], training: bool) -> None:
    document = yaml.safe_load(selected_operators_yaml(replace(EXAMPLE, scopes=scopes)))
    assert {operator["is_used_for_training"] for operator in document["operators"].values()} == {training}


@given(selections(), st.randoms())
def test_the_same_selection_gives_the_same_text_and_holds_every_operator(selection: Selection, random: object) -> None:
    text = selected_operators_yaml(selection)
    operators = list(selection.operators)
    random.shuffle(operators)  # type: ignore[attr-defined]
    assert selected_operators_yaml(replace(selection, operators=tuple(operators))) == text
    missing = {str(operator.name) for operator in selection.missing}
    assert set(yaml.safe_load(text)["operators"]) == selection.names | missing
