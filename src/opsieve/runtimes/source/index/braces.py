"""Finding the brace that closes a body, without looking at every brace of a long one where its layout allows it."""

from __future__ import annotations

import re
from itertools import islice

_BRACE = re.compile(r"[{}]")
_FEW = 48
"""Braces that are looked at one by one before the layout is tried."""


def body_end(code: str, start: int, limit: int | None = None) -> int:
    """The offset behind the `}` that closes a `{` which ended at `start`; `limit` if there is none."""
    limit = len(code) if limit is None else limit
    depth, braces, position = 1, _BRACE.finditer(code, start, limit), start
    for match in islice(braces, _FEW):
        position = match.end()
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return position
    quick = _column_zero(code, position, limit, depth)
    if quick is not None:
        return quick
    for match in braces:
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return limit


def _column_zero(code: str, start: int, limit: int, depth: int) -> int | None:
    """The same for a body that ends with a `}` at the beginning of a line, the first such; None if it does not."""
    close = code.find("\n}", start, limit)
    if close < 0:
        return None
    end = close + 2
    return end if depth + code.count("{", start, end) == code.count("}", start, end) else None
