"""The linker's names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.names import (
    kernel_symbol,
    operator_symbol,
    parse_operator_symbol,
    schema_operator,
)

_WORD = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True)
_NAMES = st.builds(OperatorName, _WORD, _WORD, st.one_of(st.just(""), _WORD))


def test_an_operator_is_named_with_lengths() -> None:
    assert operator_symbol(OperatorName.parse("aten::add.Tensor")) == "opsieve_op_4aten3add6Tensor"
    assert kernel_symbol(OperatorName.parse("aten::mm"), "CPU") == "opsieve_kernel_CPU_4aten2mm"


@given(_NAMES)
def test_a_symbol_leads_back_to_its_operator(name: OperatorName) -> None:
    assert parse_operator_symbol(operator_symbol(name)) == name


@given(_NAMES, _NAMES)
def test_no_two_operators_share_a_symbol(one: OperatorName, other: OperatorName) -> None:
    assert (one == other) == (operator_symbol(one) == operator_symbol(other))


@pytest.mark.parametrize(
    "symbol", ["", "main", "opsieve_op_", "opsieve_op_4aten", "opsieve_op_x", "opsieve_op_9aten3add"]
)
def test_other_symbols_are_no_operators(symbol: str) -> None:
    assert parse_operator_symbol(symbol) is None


def test_the_operator_of_a_schema() -> None:
    assert schema_operator("add.Tensor(Tensor self) -> Tensor", "aten") == OperatorName("aten", "add", "Tensor")
    assert schema_operator("quantized::mul(Tensor a) -> Tensor", "aten") == OperatorName("quantized", "mul")
    assert schema_operator("no name at all") is None
