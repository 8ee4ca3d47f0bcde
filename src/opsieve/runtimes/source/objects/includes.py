"""What a source text asks to include, and what a dependency file says was included."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import msgspec

_DIRECTIVE = re.compile(
    rb"^[ \t]*(?:#|%:|\?\?=)[ \t]*(include_next|include|import)\b[ \t]*"
    rb"(?:\"([^\"\n]+)\"|<([^>\n]+)>|(?=(\S)))"
    rb"|__has_include(_next)?(?:__)?[ \t]*\([ \t]*(?:\"([^\"\n]+)\"|<([^>\n]+)>)"
)
_CONTINUATION = re.compile(rb"\\\r?\n")
_WORD = re.compile(rb"(?:\\.|[^\s\\]|\\(?=\s))+")


class Style(Enum):
    """How a header is asked for; it decides where the search starts."""

    QUOTED = '"'
    ANGLED = "<"
    NEXT = ">"


class Includes(msgspec.Struct, frozen=True, array_like=True):
    """Every header that a text mentions, in any branch of any condition: (style, name). More than is used is no harm.

    `computed` says that some name comes out of a macro and so cannot be told from the text.
    """

    mentioned: tuple[tuple[Style, str], ...]
    computed: bool


def find_includes(text: bytes) -> Includes:
    """The headers mentioned by include directives and by `__has_include`, comments and dead branches not excepted."""
    if b"\\\n" in text or b"\\\r\n" in text:
        text = _CONTINUATION.sub(b"", text)
    mentioned: dict[tuple[Style, str], None] = {}
    computed = False
    for match in (match for line in _lines_with_includes(text) for match in _DIRECTIVE.finditer(line)):
        word, quoted, angled, other, next_too, asked_quoted, asked_angled = match.groups()
        quoted, angled = quoted or asked_quoted, angled or asked_angled
        if other:
            computed = True
        elif word == b"include_next" or next_too:
            mentioned[Style.NEXT, _text(quoted or angled)] = None
        else:
            mentioned[(Style.QUOTED, _text(quoted)) if quoted else (Style.ANGLED, _text(angled))] = None
    return Includes(tuple(mentioned), computed)


def _lines_with_includes(text: bytes) -> Iterator[bytes]:
    """Lines in which a directive can be: a plain search, ten times as fast as the pattern over megabytes of headers."""
    for word in (b"include", b"import"):
        end = 0
        while (at := text.find(word, end)) >= 0:
            start = text.rfind(b"\n", 0, at) + 1
            end = text.find(b"\n", at)
            end = len(text) if end < 0 else end
            yield text[start:end]


def read_depfile(path: Path) -> list[str]:
    """The files that a compiler run read, as it spells them; the source is the first. Empty if nothing tells."""
    try:
        text = _CONTINUATION.sub(b" ", path.read_bytes())
    except FileNotFoundError:
        return []
    _, colon, files = text.partition(b":")
    return [_unescaped(word) for word in _WORD.findall(files)] if colon else []


def _unescaped(word: bytes) -> str:
    return _text(re.sub(rb"\\([ \t#\\:])", rb"\1", word).replace(b"$$", b"$"))


def _text(name: bytes) -> str:
    return name.decode(errors="surrogateescape")
