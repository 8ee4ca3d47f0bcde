"""Operator lists that users give: `--op` and `--ops-from`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opsieve.errors import InvalidFile, UnknownOperator
from opsieve.operators import OperatorName
from opsieve.select.choose import ExtraOperator

_MAX_SIZE = 16 << 20


def from_option(text: str) -> ExtraOperator:
    """`ns::name.overload` is one overload, `ns::name` all of them, `ns::name.default` the one without a name."""
    return _extra(text, "--op")


def from_file(path: Path) -> tuple[ExtraOperator, ...]:
    """One operator a line, `#` starts a comment; a YAML list (`- aten::add.Tensor`) is read as well.

    Raises InvalidFile, with the line, for anything that is no operator name.
    """
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise InvalidFile("the operator list is too large", where=path, expected=f"{_MAX_SIZE} bytes or less")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidFile(f"cannot read the operator list: {error}", where=path) from error
    return tuple(_lines(path, text))


def _lines(path: Path, text: str) -> Iterator[ExtraOperator]:
    for number, line in enumerate(text.splitlines(), 1):
        item = line.partition("#")[0].strip().removeprefix("-").strip().strip("\"'")
        if item:
            try:
                yield _extra(item, f"{path}:{number}")
            except UnknownOperator as error:
                raise InvalidFile(error.problem, where=f"{path}:{number}", expected=error.expected) from error


def _extra(text: str, source: str) -> ExtraOperator:
    return ExtraOperator(OperatorName.parse(text), "." not in text, source)
