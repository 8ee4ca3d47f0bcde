from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models.collect import NeedsCollector
from opsieve.models.needs import Reach, Use
from opsieve.models.torch_facts import foldable_overloads, reach_of, replaced_by
from opsieve.operators import OperatorName

ADD, ADD_TENSOR, RELU = (OperatorName.parse(f"aten::{name}") for name in ("add", "add.Tensor", "relu"))
FIRST, SECOND = Use("f", "a:1"), Use("g", "a:2")


def test_the_order_of_calls_does_not_matter() -> None:
    calls = [(RELU, FIRST, False), (ADD_TENSOR, SECOND, False), (RELU, SECOND, False), (RELU, FIRST, False)]
    results = set()
    for order in permutations(calls):
        needs = NeedsCollector(Path("m"))
        for name, use, all_overloads in order:
            needs.add(name, use, all_overloads=all_overloads)
        results.add(needs.needs("x", "y"))
    [result] = results
    assert [(root.name, root.uses) for root in result.roots] == [(ADD_TENSOR, (SECOND,)), (RELU, (FIRST, SECOND))]


def test_all_overloads_take_in_the_single_ones() -> None:
    needs = NeedsCollector(Path("m"))
    needs.add(ADD_TENSOR, FIRST)
    needs.add(ADD_TENSOR, SECOND, all_overloads=True)
    [root] = needs.needs("x", "y").roots
    assert (root.name, root.all_overloads, root.uses) == (ADD, True, (FIRST, SECOND))


def test_a_default_overload_alone_stays_alone() -> None:
    needs = NeedsCollector(Path("m"))
    needs.add(RELU, FIRST)
    [root] = needs.needs("x", "y").roots
    assert not root.all_overloads


def test_known_reach_overrules_ours() -> None:
    needs = NeedsCollector(Path("m"))
    needs.add(RELU, FIRST, reach=Reach.INTERPRETER)
    [root] = needs.needs("x", "y").roots
    assert root.reach is Reach.INTERPRETER


def test_a_name_from_the_file_must_be_one() -> None:
    with pytest.raises(InvalidModel, match="is not an operator name") as caught:
        NeedsCollector(Path("m.pt")).add_written("no name", FIRST)
    assert caught.value.where == "m.pt: a:1"


@pytest.mark.parametrize(
    ("name", "all_overloads", "reach"),
    [
        ("aten::add.Tensor", False, Reach.DISPATCHER),
        ("aten::add.int", False, Reach.INTERPRETER),
        ("aten::add", True, Reach.DISPATCHER),
        ("aten::__getitem__", True, Reach.INTERPRETER),
        ("aten::__getitem__.t", False, Reach.INTERPRETER),
        ("aten::len.t", False, Reach.INTERPRETER),
        ("prim::RaiseException", False, Reach.INTERPRETER),
        ("torchvision::nms", False, Reach.DISPATCHER),
        ("torchvision::nms", True, Reach.DISPATCHER),
    ],
)
def test_reach(name: str, all_overloads: bool, reach: Reach) -> None:
    assert reach_of(OperatorName.parse(name), all_overloads=all_overloads) is reach


def replaced(name: str, all_overloads: bool, version: int) -> set[str]:
    found = replaced_by(OperatorName.parse(name), all_overloads=all_overloads, file_version=version)
    return {str(other) for other in found}


def test_only_operators_that_changed_after_the_file_are_replaced() -> None:
    assert "aten::div.Tensor_mode" in replaced("aten::div.Tensor", False, 3)
    assert replaced("aten::div.Tensor", False, 4) == set()
    assert replaced("aten::div.int", False, 3) == set()
    assert replaced("aten::div", True, 3) >= {"aten::div.Tensor_mode", "aten::div.Scalar_mode"}
    assert replaced("aten::relu", False, 0) == set()


def test_foldable_overloads_are_listed_by_base_name() -> None:
    assert [str(name) for name in foldable_overloads("aten::result_type")] == ["aten::result_type.Scalar_Scalar"]
    assert list(foldable_overloads("aten::add")) == []
