"""Just enough C++ to rewrite registrations: where strings, comments and brackets are.

Positions are offsets into the text. Comments and literals are blanked in `plain`, at equal length, so that a position
found there is a position in the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from opsieve.errors import InvalidFile

# In this order: a raw string may hold anything, a comment may hold quotes, a digit separator is no character literal.
_SKIPPED = re.compile(
    r'R"(?P<delimiter>[^()\\\s]{0,16})\((?:.*?)\)(?P=delimiter)"'
    r"|//(?:[^\n\\]|\\.|\\\n)*"
    r"|/\*.*?\*/"
    r'|"(?:[^"\\\n]|\\.|\\\n)*"'
    r"|(?<![0-9A-Za-z_])'(?:[^'\\\n]|\\.)+'",
    re.DOTALL,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_BRACKETS = re.compile(r"[()\[\]{}]")
_LITERAL_RUN = re.compile(r'\s*(?:u8|L)?"((?:[^"\\\n]|\\.)*)"')


@dataclass(frozen=True)
class CppText:
    """A source file and the same text with comments and literals blanked."""

    text: str
    path: str = "<text>"
    plain: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "plain", _SKIPPED.sub(_blank, self.text))

    def line(self, position: int) -> int:
        """The line number of a position, from 1."""
        return self.text.count("\n", 0, position) + 1

    def closing(self, position: int) -> int:
        """The position of the bracket that closes the one at `position`. Raises InvalidFile when nothing does."""
        open_brackets: list[str] = []
        for match in _BRACKETS.finditer(self.plain, position):
            bracket = match[0]
            if bracket in _CLOSING:
                open_brackets.append(_CLOSING[bracket])
            elif bracket != open_brackets.pop():
                break
            if not open_brackets:
                return match.start()
        raise InvalidFile(
            f"the bracket {self.plain[position : position + 1]!r} is never closed",
            where=f"{self.path}:{self.line(position)}",
            expected="C++ that a compiler accepts",
        )

    def split(self, start: int, end: int, separator: str) -> list[tuple[int, int]]:
        """The parts between separators at the outermost level of [start, end). The last part may be blank."""
        parts: list[tuple[int, int]] = []
        position = begin = start
        while position < end:
            character = self.plain[position]
            if character in _CLOSING:
                position = self.closing(position)
            elif character == separator:
                parts.append((begin, position))
                begin = position + 1
            position += 1
        return [*parts, (begin, end)]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def leading_literal(text: str) -> str | None:
    """The adjacent string literals that an expression starts with, joined, or None. Escapes are left as they are."""
    joined: list[str] = []
    position = 0
    while (match := _LITERAL_RUN.match(text, position)) is not None:
        joined.append(match[1])
        position = match.end()
    return "".join(joined) if joined else None


def any_literal(text: str) -> str | None:
    """The first run of string literals anywhere in an expression, joined, or None."""
    quote = text.find('"')
    return None if quote < 0 else leading_literal(text[quote:])
