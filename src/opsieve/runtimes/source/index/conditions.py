"""Whether the code under an `#if` is compiled, as far as the known macros tell: yes, no, or nobody knows (None)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from opsieve.runtimes.source.index.macros import Macro

Value = int | None

Defines = Mapping[str, str | tuple[str, ...]]
"""Macros of a command line, each with its value, or its values where files are compiled in several ways."""

_TOKEN = re.compile(
    r"defined\s*\(\s*\w+\s*\)|defined\s+\w+|\d[\w']*|[A-Za-z_]\w*(?:\s*\(\s*\))?|&&|\|\||[=!<>]=|[!<>()]|\S"
)
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*$")
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_MAX_TOKENS = 400
_MAX_DEPTH = 30


class Conditions:
    """Reads `#if` lines. `defines` are the macros of the command line and of the compiler; None: not known.

    With them, a name that is neither there nor in any header counts as not defined. `shared` are the headers' macros.
    """

    def __init__(
        self,
        defines: Defines | None,
        shared: Mapping[str, tuple[Macro, ...]],
        unknown: frozenset[str] = frozenset(),
    ) -> None:
        self._defines = defines
        self._shared = shared
        self._unknown = unknown

    def but_for(self, names: frozenset[str]) -> Conditions:
        """The same for a file that has macros of its own, about which nothing is known."""
        return Conditions(self._defines, self._shared, names) if names else self

    def holds(self, kind: str, text: str) -> bool | None:
        """Whether an `if`, `ifdef`, `ifndef` or `elif` with this text lets its lines through."""
        if kind in ("ifdef", "ifndef"):
            match = re.match(r"\w+", text)
            value = self._defined(match.group()) if match else None
            value = _not(value) if kind == "ifndef" else value
        else:
            value = _Reader(_TOKEN.findall(text)[:_MAX_TOKENS], self._value, self._defined).read()
        return None if value is None else bool(value)

    def _defined(self, name: str) -> Value:
        if self._defines is None or name in self._unknown:
            return None
        if name in self._defines:
            return 1
        # If a header defines it, this file may not see that header; reserved names may be the compiler's.
        return None if name in self._shared or name.startswith("_") else 0

    def _value(self, name: str, depth: int = 0) -> Value:
        if name in self._unknown:
            return None
        if self._defines is not None and name in self._defines:
            given = self._defines[name]
            return _number(given) if isinstance(given, str) else None
        shared = self._shared.get(name)
        if shared is None:
            return self._defined(name)
        if len(shared) > 1 or depth > _MAX_DEPTH:
            return None
        body = shared[0].body.strip("() \n")
        return self._value(body, depth + 1) if body.isidentifier() else _number(body)


def _number(text: str) -> Value:
    match = _NUMBER.match(text.strip())
    return int(match.group(1), 0 if match.group(1)[:2] in ("0x", "0X") else 10) if match else None


def _not(value: Value) -> Value:
    return None if value is None else int(not value)


def _and(left: Value, right: Value) -> Value:
    if left == 0 or right == 0:
        return 0
    return None if left is None or right is None else 1


class _Reader:
    """One expression; what it cannot read is not known."""

    def __init__(self, tokens: list[str], value: Callable[[str], Value], defined: Callable[[str], Value]) -> None:
        self._tokens = tokens
        self._at = 0
        self._value = value
        self._defined = defined

    def read(self) -> Value:
        value = self._either(0)
        return value if self._at == len(self._tokens) else None

    def _next(self, *wanted: str) -> str | None:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        if token is None or (wanted and token not in wanted):
            return None
        self._at += 1
        return token

    def _either(self, depth: int) -> Value:
        value = self._both(depth)
        while self._next("||"):
            value = _not(_and(_not(value), _not(self._both(depth))))
        return value

    def _both(self, depth: int) -> Value:
        value = self._compared(depth)
        while self._next("&&"):
            value = _and(value, self._compared(depth))
        return value

    def _compared(self, depth: int) -> Value:
        left = self._single(depth)
        operator = self._next(*_COMPARE)
        if operator is None:
            return left
        right = self._single(depth)
        return None if left is None or right is None else int(_COMPARE[operator](left, right))

    def _single(self, depth: int) -> Value:
        token = self._next()
        if token is None or depth > _MAX_DEPTH:
            return None
        if token == "!":
            return _not(self._single(depth + 1))
        if token == "(":
            value = self._either(depth + 1)
            return value if self._next(")") else None
        if token.startswith("defined") and len(token) > len("defined") and not token[7].isalnum() and token[7] != "_":
            return self._defined(token[7:].strip("() \t\n"))
        name = token.rstrip("() \t\n")
        return self._value(name) if name.isidentifier() else _number(token)
