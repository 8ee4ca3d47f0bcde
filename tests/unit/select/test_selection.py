from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.operators import OperatorName
from opsieve.select.selection import Reason, ReasonKind, RuntimeIdentity, SelectedOperator, Selection, join_operators
from tests.unit.select.examples import RUNTIME, selected, selections

some, more, others = selections(), selections(), selections()


@given(some, more, others)
def test_merging_is_associative(a: Selection, b: Selection, c: Selection) -> None:
    assert a.merge(b).merge(c) == a.merge(b.merge(c))


@given(some, more)
def test_merging_is_commutative(a: Selection, b: Selection) -> None:
    assert a.merge(b) == b.merge(a)


@given(some, more)
def test_merging_is_idempotent(a: Selection, b: Selection) -> None:
    assert a.merge(a) == a
    assert a.merge(b).merge(b) == a.merge(b)


@given(some, more)
def test_nothing_is_lost_and_nothing_invented(a: Selection, b: Selection) -> None:
    def facts(*selections: Selection) -> set[tuple[OperatorName, Reason]]:
        return {(o.name, reason) for selection in selections for o in selection.operators for reason in o.reasons}

    merged = a.merge(b)
    assert facts(merged) == facts(a, b)
    assert merged.names == a.names | b.names
    assert set(merged.models) == {*a.models, *b.models}
    assert set(merged.scopes) == {*a.scopes, *b.scopes}


@given(st.lists(selected))
def test_joined_operators_are_sorted_and_each_once(operators: list[SelectedOperator]) -> None:
    joined = join_operators(operators)
    names = [operator.name for operator in joined]
    assert names == sorted(set(names))
    assert set(names) == {operator.name for operator in operators}
    assert all(operator.reasons == tuple(sorted(set(operator.reasons))) for operator in joined)


def test_selections_for_different_runtimes_are_not_merged() -> None:
    one = Selection(RUNTIME, (), (), ())
    other = replace(one, runtime=RuntimeIdentity("2.12.0", "cd" * 20))
    with pytest.raises(InvalidFile, match=r"2\.13\.0\+cpu \(abababababab\) and 2\.12\.0 \(cdcdcdcdcdcd\)"):
        one.merge(other)


@pytest.mark.parametrize(
    ("kinds", "root"),
    [
        ([ReasonKind.MODEL], True),
        ([ReasonKind.OPTION], True),
        ([ReasonKind.DEPENDENCY, ReasonKind.MODEL], True),
        ([ReasonKind.DEPENDENCY], False),
        ([ReasonKind.FRAMEWORK], False),
        ([ReasonKind.ANY_OPERATOR], False),
    ],
)
def test_a_root_is_what_somebody_asked_for(kinds: list[ReasonKind], root: bool) -> None:
    operator = SelectedOperator(OperatorName("aten", "add"), tuple(Reason(kind) for kind in kinds))
    assert operator.is_root is root
