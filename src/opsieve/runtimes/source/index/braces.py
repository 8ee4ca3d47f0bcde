"""Finding the brace that closes a body."""

from __future__ import annotations

import re

_BRACE = re.compile(r"[{}]")


def body_end(code: str, start: int, limit: int | None = None) -> int:
    """The offset behind the `}` that closes a `{` which ended at `start`; `limit` if there is none."""
    limit = len(code) if limit is None else limit
    depth = 1
    for match in _BRACE.finditer(code, start, limit):
        depth += 1 if match.group() == "{" else -1
        if depth == 0:
            return match.end()
    return limit
