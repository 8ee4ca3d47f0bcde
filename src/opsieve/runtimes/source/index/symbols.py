"""A linker's symbol as the parts by which its definition is found: kind, qualified name, arguments, parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from pycxxfilt import itanium_demangle

from opsieve.runtimes.source.index.names import operator_name

MAX_SYMBOL = 20_000
"""Characters of a symbol that is read; longer ones are instances of templates that no source file names."""

_SPECIAL = re.compile(
    r"(?:(?P<class>vtable|VTT|typeinfo|typeinfo name|construction vtable) for "
    r"|(?P<thunk>(?:non-virtual|virtual|covariant return) thunk to )"
    r"|(?:guard variable|thread-local (?:wrapper|initialization) routine|TLS (?:wrapper|init) function"
    r"|reference temporary(?: #\d+)?) for )"
)
_OPERATOR = re.compile(
    r'operator(?:\(\)|\[\]|<<=|>>=|<=>|->\*|<<(?=[(<])|>>|<=|>=|->|<|>|""\s*\w+|\s*new(?:\[\])?|\s*delete(?:\[\])?'
    r"|[-+*/%^&|~!=,]{1,3}|\s+[^()]+)"
)


class SymbolKind(StrEnum):
    """What a definition of the symbol looks like in source."""

    FUNCTION = "function"
    VARIABLE = "variable"
    CLASS = "class"
    """A vtable or type information, which comes with the class's key function."""

    C = "C name"
    """Not mangled: a function or variable."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """One symbol, read."""

    name: str
    """As the linker knows it."""

    demangled: str
    kind: SymbolKind
    parts: tuple[str, ...]
    """The qualified name without template arguments; for what stands inside a function, that function's."""

    arguments: str = ""
    """All template arguments in the name."""

    parameters: str | None = None
    """Types of a function's parameters."""

    @property
    def key(self) -> str:
        """The qualified name in one piece."""
        return "::".join(self.parts)


def read_symbol(name: str) -> Symbol:
    """Read a symbol; what is not mangled, or not readable, is taken for a C name."""
    demangled = _demangle(name)
    if demangled is None:
        return Symbol(name, name, SymbolKind.C, (name,))
    special = _SPECIAL.match(demangled)
    rest = demangled[special.end() :] if special else demangled
    if special and special["class"]:
        rest = rest.split("-in-")[-1] if special["class"].startswith("construction") else rest
        parts, arguments, _ = _Reader(rest).read()
        return Symbol(name, demangled, SymbolKind.CLASS, parts, arguments)
    parts, arguments, parameters = _Reader(rest).read()
    kind = SymbolKind.VARIABLE if parameters is None else SymbolKind.FUNCTION
    return Symbol(name, demangled, kind, parts, arguments, parameters)


def _demangle(name: str) -> str | None:
    if not name.startswith("_Z") or len(name) > MAX_SYMBOL:
        return None
    try:
        return str(itanium_demangle(name))
    except ValueError:
        return None


class _Reader:
    """Walks over a demangled name; spaces outside brackets end the return type, parentheses are the parameters."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._parts: list[str] = []
        self._part = ""
        self._arguments: list[str] = []

    def read(self) -> tuple[tuple[str, ...], str, str | None]:
        """The parts of the name, its template arguments, its parameters (None: it has none)."""
        text = self._text
        while self._at < len(text):
            mark = text[self._at]
            if mark == "(" and not text.startswith("(anonymous namespace)", self._at):
                end = _matching(text, self._at)
                if self._part or self._parts:
                    return (*self._parts, self._part), " ".join(self._arguments), text[self._at + 1 : end - 1]
                self._at += 1
            else:
                self._step(mark)
        return (*self._parts, self._part), " ".join(self._arguments), None

    def _step(self, mark: str) -> None:
        text = self._text
        operator = _OPERATOR.match(text, self._at) if mark == "o" and not self._part else None
        if operator:
            self._part, self._at = operator_name(operator.group()), operator.end()
        elif text.startswith("::", self._at):
            self._parts.append(self._part)
            self._part, self._at = "", self._at + 2
        elif mark == " ":
            self._parts, self._part, self._arguments, self._at = [], "", [], self._at + 1
        elif mark == "<":
            end = _matching(text, self._at)
            self._arguments.append(text[self._at : end])
            self._at = end
        elif mark == "[":
            self._at = _matching(text, self._at)
        elif mark == "(":
            end = _matching(text, self._at)
            self._part, self._at = text[self._at : end], end
        else:
            self._part += mark
            self._at += 1


def _matching(text: str, start: int) -> int:
    """The offset behind the bracket that closes the one at `start`."""
    depth = 0
    for match in _BRACKETS.finditer(text, start):
        mark = match.group()
        if mark in "<([":
            depth += 1
        elif mark in ">)]":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(text)


_BRACKETS = re.compile(r"->|operator[<>]=?[<>]?=?(?=\()|[<>()\[\]]")
