"""What was learned: merging obeys the laws, and files hold it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.index import NOTHING_LEARNED, Learned

tables = st.dictionaries(
    st.sampled_from(["_Z1fv", "_Z1gv", "h"]), st.frozensets(st.sampled_from(["a.cpp", "b.cpp", "c.c"]), min_size=1)
)
facts = st.builds(Learned, tables, tables)


@given(facts, facts, facts)
def test_merging_is_associative_commutative_and_idempotent(a: Learned, b: Learned, c: Learned) -> None:
    assert a.merged(b).merged(c) == a.merged(b.merged(c)) == c.merged(b, a)
    assert a.merged(a) == a == a.merged(NOTHING_LEARNED)


@given(facts, facts)
def test_nothing_is_both_proved_and_refuted(a: Learned, b: Learned) -> None:
    both = a.merged(b)
    for symbol in both.defines.keys() | both.lacks.keys():
        assert not both.proved(symbol) & both.refuted(symbol)


@given(facts)
def test_saved_facts_are_read_back(tmp_path_factory: pytest.TempPathFactory, learned: Learned) -> None:
    path = tmp_path_factory.mktemp("learned") / "facts"
    learned.save(path)
    assert Learned.load(path) == learned


def test_an_object_tells_what_it_defines_and_what_it_was_asked_for_in_vain() -> None:
    learned = Learned.from_object("a.cpp", ["f", "g"], asked=["g", "h"])
    assert (learned.proved("f"), learned.proved("g"), learned.proved("h")) == ({"a.cpp"}, {"a.cpp"}, frozenset())
    assert (learned.refuted("g"), learned.refuted("h")) == (frozenset(), {"a.cpp"})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"facts",
        # A number of a file that is not in the list: {format: 1, files: [], proved: {f: [3]}, refuted: {}}.
        b"\x84\xa6format\x01\xa5files\x90\xa6proved\x81\xa1f\x91\x03\xa7refuted\x80",
        b"\x84\xa6format\x01\xa5files\x91\xa1a\xa6proved\x81\xa1f\x91\xff\xa7refuted\x80",
        b"\x84\xa6format\x09\xa5files\x90\xa6proved\x80\xa7refuted\x80",
    ],
)
def test_broken_facts_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "facts").write_bytes(content)
    with pytest.raises(InvalidFile):
        Learned.load(tmp_path / "facts")
