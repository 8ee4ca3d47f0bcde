"""Where the bytes of a linked program are, by operator and by file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

SCHEMA = "opsieve-sizes-1"
_MAX_NAME = 64


@dataclass(frozen=True, slots=True, order=True)
class SizeRow:
    """A name, and the bytes of the program that are put down to it."""

    name: str
    bytes: int


@dataclass(frozen=True)
class SizeTables:
    """Where the bytes of a program are. Rows come in any order; each table stands for itself, so they may overlap.

    `total` is the size in bytes of the program as it is shipped.
    """

    total: int
    by_operator: tuple[SizeRow, ...] = ()
    by_file: tuple[SizeRow, ...] = ()


def sizes_text(tables: SizeTables) -> str:
    """The tables for a person to read, the largest first."""
    return "\n".join(
        [
            f"{tables.total:>12,}  bytes in all",
            "",
            *_table("operator", tables.by_operator),
            "",
            *_table("file", tables.by_file),
            "",
        ]
    )


def sizes_json(tables: SizeTables) -> bytes:
    """The tables for a program to read; the same tables give the same bytes."""
    document = {
        "schema": SCHEMA,
        "total": tables.total,
        "by_operator": _largest_first(tables.by_operator),
        "by_file": _largest_first(tables.by_file),
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _table(title: str, rows: Sequence[SizeRow]) -> list[str]:
    sums = f"{sum(row.bytes for row in rows):>12,}  by {title}, {len(rows):,} of them"
    return [sums, *(f"{row.bytes:>12,}  {_short(row.name)}" for row in _largest_first(rows))]


def _largest_first(rows: Iterable[SizeRow]) -> list[SizeRow]:
    return sorted(rows, key=lambda row: (-row.bytes, row.name))


def _short(name: str) -> str:
    """The end says more than the start: the paths of a tree begin alike."""
    return name if len(name) <= _MAX_NAME else f"...{name[3 - _MAX_NAME :]}"
