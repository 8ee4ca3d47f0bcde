from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import UnknownOperator
from opsieve.operators import MAX_NAME_LENGTH, OperatorName

IDENTIFIERS = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,20}", fullmatch=True)
NAMES = st.builds(OperatorName, IDENTIFIERS, IDENTIFIERS, (IDENTIFIERS | st.just("")).filter(lambda o: o != "default"))


@given(NAMES)
def test_a_printed_name_is_read_back(name: OperatorName) -> None:
    assert OperatorName.parse(str(name)) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("aten::relu", OperatorName("aten", "relu")),
        ("aten::relu.default", OperatorName("aten", "relu")),
        ("aten::add.Tensor", OperatorName("aten", "add", "Tensor")),
        ("aten::__getitem__.t", OperatorName("aten", "__getitem__", "t")),
        ("a::b::c.d", OperatorName("a::b", "c", "d")),
    ],
)
def test_names(text: str, name: OperatorName) -> None:
    assert OperatorName.parse(text) == name
    assert name.base_name == f"{name.namespace}::{name.base}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "relu",
        "aten::",
        "::relu",
        "aten:relu",
        "aten::re lu",
        "aten::relu.",
        "aten::a.b.c",
        "aten::1",
        "aten::relu\n",
    ],
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UnknownOperator, match="is not an operator name"):
        OperatorName.parse(text)


def test_an_endless_name_is_refused_and_not_printed_in_full() -> None:
    with pytest.raises(UnknownOperator) as caught:
        OperatorName.parse("aten::" + "a" * MAX_NAME_LENGTH)
    assert len(str(caught.value)) < 300


@given(st.lists(NAMES))
def test_names_sort_by_namespace_base_and_overload(names: list[OperatorName]) -> None:
    assert sorted(names) == sorted(names, key=lambda name: (name.namespace, name.base, name.overload))
