"""Selections for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from opsieve.graph.scopes import Scope
from opsieve.operators import OperatorName
from opsieve.select.selection import (
    ModelIdentity,
    Reason,
    ReasonKind,
    RuntimeIdentity,
    SelectedOperator,
    Selection,
    join_operators,
)

RUNTIME = RuntimeIdentity("2.13.0+cpu", "ab" * 20)

words = st.sampled_from(["a", "b_", "_c9", "add"])
names = st.builds(OperatorName, words, words, st.sampled_from(["", "Tensor", "out"]))
reasons = st.builds(Reason, st.sampled_from(list(ReasonKind)), st.text(max_size=6), st.text(max_size=6))
selected = st.builds(
    SelectedOperator,
    names,
    st.sets(reasons, min_size=1, max_size=3).map(lambda found: tuple(sorted(found))),
)
models = st.builds(ModelIdentity, words, st.just("lite"), words)


@st.composite
def selections(draw: st.DrawFn) -> Selection:
    """Selections for one runtime, in normal form."""
    return Selection(
        runtime=RUNTIME,
        scopes=tuple(sorted(draw(st.sets(st.sampled_from([str(scope) for scope in Scope]), max_size=3)))),
        models=tuple(sorted(draw(st.sets(models, max_size=3)))),
        operators=join_operators(draw(st.lists(selected, max_size=6))),
        missing=join_operators(draw(st.lists(selected, max_size=2))),
    )
