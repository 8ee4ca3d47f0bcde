"""`selected_operators.yaml` as PyTorch's own code reads it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opsieve.emit.selected_operators import selected_operators_yaml
from opsieve.graph.op_graph import OpGraph
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.operators import OperatorName
from opsieve.select.choose import choose
from opsieve.select.selection import Selection

pytestmark = pytest.mark.torch

ROOTS = ("aten::conv2d", "aten::relu_", "aten::batch_norm", "torchvision::nms")


@pytest.fixture(scope="module")
def selection(cached_graph: OpGraph) -> Selection:
    roots = tuple(
        RootOperator(OperatorName.parse(name), False, Reach.DISPATCHER, (Use("forward", "code.py:1"),))
        for name in ROOTS
    )
    model = ModelNeeds("net.ptl", "lite", "f00d", roots, ("forward",), ())
    return choose(cached_graph, "2.13.0", [model])[0]


@pytest.fixture(scope="module")
def builder(selection: Selection, tmp_path_factory: pytest.TempPathFactory) -> Any:
    from torchgen.selective_build.selector import SelectiveBuilder

    file: Path = tmp_path_factory.mktemp("yaml") / "selected_operators.yaml"
    file.write_text(selected_operators_yaml(selection))
    return SelectiveBuilder.from_yaml_path(str(file))


def test_it_selects_what_was_selected(builder: Any, selection: Selection, cached_graph: OpGraph) -> None:
    wanted = selection.names | {"torchvision::nms"}
    assert len(wanted) > 100
    assert all(builder.is_operator_selected(name) for name in wanted)
    others = [name for name in cached_graph.operators if name not in wanted]
    assert len(others) > 2000
    assert not any(builder.is_operator_selected(name) for name in others)


def test_it_knows_the_roots(builder: Any, selection: Selection) -> None:
    roots = {name for name in (*selection.names, "torchvision::nms") if builder.is_root_operator(name)}
    assert roots == set(ROOTS)


def test_inference_is_not_training(builder: Any, selection: Selection) -> None:
    assert not any(builder.is_operator_selected_for_training(name) for name in selection.names)


def test_what_is_not_selected_yet_stays(builder: Any) -> None:
    assert builder.is_kernel_dtype_selected("mul_cpu", "Float")
    assert builder.include_all_non_op_selectives
    assert not builder.include_all_operators


def test_torchgen_merges_it_with_others(builder: Any, selection: Selection) -> None:
    from torchgen.selective_build.selector import SelectiveBuilder, combine_selective_builders

    other = SelectiveBuilder.from_legacy_op_registration_allow_list({"aten::svd"}, True, False)
    both = combine_selective_builders(builder, other)
    assert both.is_operator_selected("aten::svd")
    assert all(both.is_operator_selected(name) for name in selection.names)
