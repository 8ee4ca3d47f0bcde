"""Finding the declared name in a declaration: by walking left from its parentheses or its end, in linear time."""

from __future__ import annotations

import re
from typing import NamedTuple

_OPERATOR = (
    r"operator\s*(?:\(\s*\)|\[\s*\]|\"\"\s*\w+|new\s*(?:\[\])?|delete\s*(?:\[\])?"
    r"|[^\w\s(\[\"]{1,3}|\s[A-Za-z_][\w:<>,\s*&]*?)"
)
_CALL = re.compile(rf"(?<!\w)({_OPERATOR})\s*\(|[\w>]\s*\(")
_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
_PARENTHESES = re.compile(r"[()]")
_INITIALISER = re.compile(r"operator\s*[^\w\s]+|[<>()=]")
_ARRAY = re.compile(r"\s*\[[^\[\]]*\]\s*$")

NOT_A_NAME = frozenset(
    (
        *(
            "if",
            "for",
            "while",
            "switch",
            "return",
            "catch",
            "else",
            "do",
            "throw",
            "new",
            "delete",
            "and",
            "or",
            "not",
        ),
        *("void", "int", "bool", "char", "float", "double", "long", "short", "unsigned", "signed", "auto", "const"),
        *("defined", "sizeof", "alignof", "noexcept", "decltype", "static_assert", "requires"),
        *("__attribute__", "__declspec"),
    )
)
"""Words that may stand before `(` or at the end of a declaration without being what it declares."""


class Callable(NamedTuple):
    """A declared function, or a variable with its initialiser in parentheses."""

    before: str
    name: str
    parameters: str


def callable_declarator(head: str) -> Callable | None:
    """The first `name(...)` outside template arguments; None if there is none."""
    for match in _CALL.finditer(head):
        last = match.start(1) if match.group(1) else _component(head, match.start() + 1)
        start = _scope_start(head, last)
        before, name = head[:start], head[start : match.end() - 1].strip()
        if not name or name in NOT_A_NAME or before.count("<") > before.count(">") - before.count("->"):
            continue
        end = _closing(head, match.end())
        if not before.strip() and "::" not in name and name[0] != "~" and not match.group(1):
            # No type before it: a macro, or `_Pragma`, in front of the declaration. Members are qualified out here.
            continue
        if before.count("(") > before.count(")") or head[end + 1 :].lstrip().startswith("("):
            continue
        return Callable(before, name, head[match.end() : end])
    return None


def last_name(text: str) -> tuple[str, str] | None:
    """What stands before the qualified name at the end of `text` (array bounds are passed over), and the name."""
    while array := _ARRAY.search(text):
        text = text[: array.start()]
    end = len(text.rstrip())
    last = _component(text, end)
    if last == end or text[last].isdigit():
        return None
    start = _scope_start(text, last)
    return text[:start], text[start:end]


def before_initialiser(head: str) -> str:
    """A declaration up to its `=` outside brackets."""
    depth = 0
    for match in _INITIALISER.finditer(head):
        mark = match.group()
        if mark in "<(":
            depth += 1
        elif mark in ">)":
            depth -= 1
        elif mark == "=" and depth <= 0:
            return head[: match.start()].rstrip()
    return head.strip()


def has_initialiser(head: str) -> bool:
    """Whether a `=` stands outside brackets."""
    return "=" in head and before_initialiser(head) != head.strip()


def _scope_start(text: str, start: int) -> int:
    """Where the qualified name begins whose last component begins at `start`: walks left over `A<...>::B::`."""
    while True:
        left = text[:start].rstrip()
        if not left.endswith("::"):
            return start
        colons = len(left) - 2
        if text[:colons].endswith((" ", "\t", "\n")):
            # `void ::f()`: what stands before is the type.
            return colons
        start = _component(left, colons)
        if start == colons:
            return start


def _component(text: str, end: int) -> int:
    """Where the identifier (with template arguments, with `~`) begins that ends at `end`; `end` if there is none."""
    stop = len(text[:end].rstrip())
    if text.endswith(">", 0, stop) and not text.endswith("->", 0, stop):
        stop = _opening(text, stop)
    begin = len(text[:stop].rstrip(_WORD))
    if begin == stop:
        return end
    left = text[:begin].rstrip()
    return len(left) - 1 if left.endswith("~") else begin


def _opening(text: str, stop: int) -> int:
    """The end of what stands before the `<` of the template arguments that end at `stop`."""
    depth = 0
    for at in range(stop - 1, -1, -1):
        depth += (text[at] == ">") - (text[at] == "<")
        if depth == 0:
            return len(text[:at].rstrip())
    return stop


def _closing(text: str, position: int) -> int:
    depth = 1
    for match in _PARENTHESES.finditer(text, position):
        depth += 1 if match.group() == "(" else -1
        if depth == 0:
            return match.start()
    return len(text)
