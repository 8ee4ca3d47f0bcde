"""Qualified C++ names as the index files them: without template arguments, without spaces."""

from __future__ import annotations

import re

_SPACES_AT_SIGNS = re.compile(r"\s+(?=\W)|(?<=\W)\s+")
_CONVERSION = re.compile(r"operator\s+(?!new\b|delete\b|co_await\b)[A-Za-z_]")
_INNERMOST = re.compile(r"<[^<>]*>")


def split_arguments(name: str) -> tuple[str, str]:
    """A name without its template arguments, and these: `A <int>::b` is (`A::b`, `<int>`). Operators stay whole."""
    at = name.find("operator")
    if at >= 0 and (at == 0 or not (name[at - 1].isalnum() or name[at - 1] == "_")):
        scope, arguments = split_arguments(name[:at])
        return scope + operator_name(name[at:]), arguments
    if "<" not in name:
        return "".join(name.split()), ""
    arguments = name[name.find("<") : name.rfind(">") + 1]
    while True:
        shorter = _INNERMOST.sub("", name)
        if shorter == name:
            return "".join(name.split()), arguments
        name = shorter


def operator_name(text: str) -> str:
    """`operator <<` as `operator<<`; a conversion as `operator type`, as its type may be written in many ways."""
    return "operator type" if _CONVERSION.match(text) else _SPACES_AT_SIGNS.sub("", text).strip()
