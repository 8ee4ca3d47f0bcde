"""Selections as JSON files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opsieve.errors import InvalidFile, UnknownOperator
from opsieve.graph.scopes import Scope
from opsieve.operators import OperatorName
from opsieve.select.selection import Selection

SCHEMA = "opsieve-selection-1"
_MAX_SIZE = 64 << 20


class _Document(msgspec.Struct, frozen=True):
    schema: str
    selection: Selection


def selection_to_json(selection: Selection) -> bytes:
    """The selection as indented JSON; the same selection gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(_Document(SCHEMA, selection)), indent=1) + b"\n"


def selection_from_json(path: Path) -> Selection:
    """Read what `selection_to_json` wrote. Raises InvalidFile for anything else."""
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise InvalidFile(
                "the file is too large for a selection", where=path, expected=f"{_MAX_SIZE} bytes or less"
            )
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except OSError as error:
        raise InvalidFile(f"cannot read the selection: {error.strerror}", where=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(
            f"this is no selection: {error}", where=path, expected="a selection.json of opsieve"
        ) from error
    if document.schema != SCHEMA:
        raise InvalidFile(f"unknown schema {document.schema!r}", where=path, expected=SCHEMA)
    return _checked(document.selection, path)


def _checked(selection: Selection, path: Path) -> Selection:
    """The selection in its normal form: sorted, each operator once. Raises InvalidFile for names that are none."""
    for operator in (*selection.operators, *selection.missing):
        if not _is_name(operator.name) or not operator.reasons:
            raise InvalidFile(
                f"{str(operator.name)[:80]!r} is no operator with a reason",
                where=path,
                expected="namespace::name.overload",
            )
    unknown = set(selection.scopes) - set(Scope)
    if unknown:
        raise InvalidFile(f"unknown scope {min(unknown)[:80]!r}", where=path, expected=", ".join(Scope))
    return selection.merge(selection)


def _is_name(name: OperatorName) -> bool:
    try:
        return OperatorName.parse(str(name)) == name
    except UnknownOperator:
        return False
