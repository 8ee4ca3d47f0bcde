"""C++ source text without comments and literals, and with its directives as events beside the code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

# Each alternative begins with a literal character, so that the search skips plain code at memory speed.
_NOISE = re.compile(
    r"//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)"
    r'|R"([^()\s\\"]{0,16})\(.*?\)\1"'
    r'|(")(?:[^"\\\n]|\\.)*"'
    # Not the separator of digits, 1'000.
    r"|'(?<![0-9A-Za-z_]')(?:[^'\\\n]|\\.)+'",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"#[ \t]*(\w*)([^\n\\]*(?:\\.[^\n\\]*)*)\n?", re.DOTALL)
_CONTINUED = re.compile(r"\\\r?\n")
_INCLUDE = re.compile(r"""#[ \t]*(?:include|import)[ \t]*[<"]([^>"\n]+)""")
_EVENTS = frozenset({"define", "undef", "if", "ifdef", "ifndef", "else", "elif", "endif"})


class Event(NamedTuple):
    """A directive: what it is, what it says, and the offset in the code at which it stood."""

    at: int
    kind: str
    text: str

    @property
    def defines(self) -> bool:
        """Whether it gives a macro a meaning."""
        return self.kind == "define" and self.text[:1].isidentifier()


@dataclass(frozen=True, slots=True)
class Unit:
    """One file: its code without comments, literals (`""` stands for a string) and directives, and the directives."""

    code: str
    events: tuple[Event, ...]
    includes: frozenset[str] = frozenset()
    """As written between the brackets or quotes."""

    @property
    def defined(self) -> frozenset[str]:
        """The names that the file itself defines as macros."""
        return frozenset(event.text.partition("(")[0].split(maxsplit=1)[0] for event in self.events if event.defines)


def read_unit(text: str) -> Unit:
    """Split the text of a file. Anything is accepted: what is not C++ gives code that is not C++."""
    plain = _NOISE.sub(r"\2\2", text)
    pieces: list[str] = []
    events: list[Event] = []
    position = length = 0
    for match in _DIRECTIVE.finditer(plain):
        line = max(position, plain.rfind("\n", position, match.start()) + 1)
        if plain[line : match.start()].strip():
            # Not the first sign of its line.
            continue
        piece = plain[position:line]
        pieces.append(piece)
        length += len(piece)
        position = match.end()
        if match.group(1) in _EVENTS:
            events.append(Event(length, match.group(1), _CONTINUED.sub("\n", match.group(2)).strip()))
    pieces.append(plain[position:])
    return Unit("".join(pieces), tuple(events), frozenset(_INCLUDE.findall(text)))
