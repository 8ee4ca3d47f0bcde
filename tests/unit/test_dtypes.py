"""Names of dtypes, and what kernels keep of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.dtypes import SCALAR_TYPES, KernelDtypes, parse_dtype
from opsieve.errors import InvalidFile

_DTYPES = st.builds(
    KernelDtypes.of,
    st.sets(st.sampled_from(sorted(SCALAR_TYPES)), max_size=3),
    st.dictionaries(st.sampled_from("abc"), st.sets(st.sampled_from(sorted(SCALAR_TYPES)), max_size=3), max_size=3),
)


@pytest.mark.parametrize("text", ["float", "float32", "Float", "torch.float32", "at::kFloat", " FLOAT32 "])
def test_every_spelling_of_a_dtype(text: str) -> None:
    assert parse_dtype(text) == "Float"


@pytest.mark.parametrize("text", ["", "floaty", "str", "x" * 200])
def test_what_is_no_dtype_is_an_error(text: str) -> None:
    with pytest.raises(InvalidFile, match="no dtype"):
        parse_dtype(text)


@given(_DTYPES, _DTYPES, _DTYPES)
def test_merging_is_associative_commutative_and_idempotent(a: KernelDtypes, b: KernelDtypes, c: KernelDtypes) -> None:
    assert a.merge(b) == b.merge(a)
    assert a.merge(b).merge(c) == a.merge(b.merge(c))
    assert a.merge(a) == a
