from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.graph.scopes import Scope
from opsieve.operators import OperatorName
from opsieve.select.selection import Reason, ReasonKind, SelectedOperator, Selection
from opsieve.select.store import SCHEMA, selection_from_json, selection_to_json
from tests.unit.select.examples import RUNTIME, selections

with_folder = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
VALID = selection_to_json(
    Selection(
        RUNTIME,
        ("inference",),
        (),
        (SelectedOperator(OperatorName("aten", "add", "Tensor"), (Reason(ReasonKind.MODEL, "m.pt", "forward"),)),),
    )
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "selection.json"


@with_folder
@given(selections())
def test_what_is_read_is_what_was_written(file: Path, selection: Selection) -> None:
    raw = selection_to_json(selection)
    file.write_bytes(raw)
    assert selection_from_json(file) == selection
    assert selection_to_json(selection_from_json(file)) == raw


def test_the_file_is_readable_by_people_and_other_tools() -> None:
    document = json.loads(VALID)
    assert document["schema"] == SCHEMA
    (operator,) = document["selection"]["operators"]
    assert operator["name"] == {"namespace": "aten", "base": "add", "overload": "Tensor"}
    assert operator["reasons"] == [{"kind": "model", "source": "m.pt", "place": "forward"}]
    assert VALID.count(b"\n") > 10


def changed(**fields: Any) -> bytes:
    document = json.loads(VALID)
    document["selection"].update(fields)
    return json.dumps(document).encode()


def operator(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(VALID)["selection"]["operators"][0]
    return {**found, **fields}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "this is no selection"),
        (b"{}", "missing required field"),
        (b"[]", "this is no selection"),
        (b"\xff\xfe", "this is no selection"),
        (b'{"schema": "\xff"}', "this is no selection"),
        (b'{"x": ' + b"[" * 100_000, "this is no selection"),
        (VALID[:-30], "this is no selection"),
        (VALID.replace(SCHEMA.encode(), b"opsieve-selection-9"), "unknown schema 'opsieve-selection-9'"),
        (changed(operators="all"), "this is no selection"),
        (changed(scopes=["everything"]), "unknown scope 'everything'"),
        (changed(operators=[operator(name={"namespace": "a b", "base": "c"})]), "'a b::c' is no operator"),
        (changed(operators=[operator(name={"namespace": "a", "base": "c.d"})]), "'a::c.d' is no operator"),
        (changed(missing=[operator(name={"namespace": "a", "base": "\x1b[31m"})]), "is no operator"),
        (changed(operators=[operator(reasons=[])]), "is no operator with a reason"),
        (changed(operators=[operator(reasons=[{"kind": "whim"}])]), "this is no selection"),
    ],
)
def test_other_files_are_refused(file: Path, raw: bytes, message: str) -> None:
    file.write_bytes(raw)
    with pytest.raises(InvalidFile, match=message) as fault:
        selection_from_json(file)
    assert fault.value.where == str(file)


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.json"):
        with pytest.raises(InvalidFile, match="cannot read the selection"):
            selection_from_json(path)


def test_a_file_that_is_too_large_is_not_read(file: Path) -> None:
    with file.open("wb") as stream:
        stream.truncate(65 << 20)
    with pytest.raises(InvalidFile, match="too large"):
        selection_from_json(file)


@with_folder
@given(st.binary(max_size=30), st.integers(0, len(VALID)))
def test_damaged_files_are_refused_or_still_a_selection(file: Path, noise: bytes, at: int) -> None:
    file.write_bytes(VALID[:at] + noise + VALID[at + len(noise) :])
    try:
        selection = selection_from_json(file)
    except InvalidFile:
        return
    assert set(selection.scopes) <= set(Scope)
    assert all(OperatorName.parse(name) for name in selection.names)


def test_operators_in_any_order_are_put_into_normal_form(file: Path) -> None:
    second = operator(name={"namespace": "aten", "base": "abs"})
    file.write_bytes(changed(operators=[operator(), second, operator()]))
    assert [str(o.name) for o in selection_from_json(file).operators] == ["aten::abs", "aten::add.Tensor"]
