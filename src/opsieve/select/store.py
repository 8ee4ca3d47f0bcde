"""Selections as JSON files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opsieve.errors import InvalidFile
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
    except msgspec.DecodeError as error:
        raise InvalidFile(
            f"this is no selection: {error}", where=path, expected="a selection.json of opsieve"
        ) from error
    if document.schema != SCHEMA:
        raise InvalidFile(f"unknown schema {document.schema!r}", where=path, expected=SCHEMA)
    return document.selection
