"""How well parameters or template arguments as written in source fit those of a symbol, by the words in them.

Source says `IntArrayRef size`, the symbol `c10::ArrayRef<long>`: the tree's own `using` and `typedef` lines lead from
one to the other, a compiler is not needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

_ALIAS = re.compile(r"\busing\s+(\w{4,})\s*=\s*([^;{}()]{1,200});|\btypedef\s+([^;{}()]{1,200}?)\s+(\w{4,})\s*;")
_NAMESPACES = re.compile(r"[A-Za-z_]\w*\s*::")
_WORD = re.compile(r"[A-Za-z_]\w*|\d+")
_UNSAID = frozenset({"const", "struct", "class", "enum", "typename", "volatile", "std", "signed"})
_FIXED_WIDTH = {
    "int8_t": "signed char",
    "uint8_t": "unsigned char",
    "int16_t": "short",
    "uint16_t": "unsigned short",
    "int32_t": "int",
    "uint32_t": "unsigned int",
    "int64_t": "long",
    "uint64_t": "unsigned long",
    "size_t": "unsigned long",
    "ssize_t": "long",
    "ptrdiff_t": "long",
    "uintptr_t": "unsigned long",
    "string": "basic_string",
    "ostream": "basic_ostream",
    "istream": "basic_istream",
    "string_view": "basic_string_view",
}
"""The C library's types as the 64-bit ABIs of Linux mangle them, and the standard library's own aliases."""

_MAX_ALIASES = 4


def find_aliases(code: str) -> Iterator[tuple[str, str]]:
    """The `using A = B;` and `typedef B A;` of a text: each name with what it stands for."""
    for match in _ALIAS.finditer(code):
        name, meaning = (match[1], match[2]) if match[1] else (match[4], match[3])
        yield name, " ".join(meaning.split())


class Aliases:
    """What type names stand for. A name that stands for many things in different places stands for none."""

    def __init__(self, meanings: Mapping[str, Iterable[str]]) -> None:
        self._meanings = {name: " ".join(known) for name, known in meanings.items() if len(list(known)) <= _MAX_ALIASES}
        self.words = lru_cache(maxsize=20_000)(self._words)

    def _words(self, text: str) -> frozenset[str]:
        """The words of a type as written, with those that they stand for."""
        found = words(text)
        for _ in range(3):
            more = {
                word
                for name in found
                for meaning in (_FIXED_WIDTH.get(name), self._meanings.get(name))
                if meaning
                for word in words(meaning)
            }
            if more <= found:
                break
            found |= more
        return found


@lru_cache(maxsize=20_000)
def words(text: str) -> frozenset[str]:
    """The words of a type but for namespaces and `const`."""
    return frozenset(_WORD.findall(_NAMESPACES.sub(" ", text))) - _UNSAID


@lru_cache(maxsize=20_000)
def split_list(text: str) -> tuple[str, ...]:
    """The items of a list separated by commas outside brackets."""
    items, depth, start = [], 0, 0
    for match in re.finditer(r"->|[<>()\[\]{},]", text):
        mark = match.group()
        if mark in "<([{":
            depth += 1
        elif mark in ">)]}":
            depth -= 1
        elif mark == "," and depth <= 0:
            items.append(text[start : match.start()].strip())
            start = match.end()
    last = text[start:].strip()
    return (*items, last) if last and (items or last != "void") else tuple(items)


def fit_parameters(wanted: str, written: str, aliases: Aliases) -> float:
    """0 to 1: how well parameters as written fit those of a symbol; 0 if their numbers differ."""
    types, texts = split_list(wanted), split_list(written)
    if len(types) != len(texts):
        return 0.0
    if not types:
        return 1.0
    return sum(_fit_one(a, b, aliases) for a, b in zip(types, texts, strict=True)) / len(types)


def _fit_one(wanted: str, written: str, aliases: Aliases) -> float:
    text = written.partition("=")[0]
    asked, said = words(wanted), aliases.words(text)
    if not asked:
        return 1.0
    fit = len(asked & said) / len(asked) - 0.02 * len(said - asked) + _fit_scopes(wanted, text)
    if wanted.count("*") != written.count("*"):
        fit -= 0.3
    if (wanted.count("&") > 0) != (written.count("&") > 0):
        fit -= 0.1
    return min(1.0, max(0.05, fit))


def fit_arguments(wanted: str, written: str, aliases: Aliases) -> float:
    """0 to 1: how well template arguments as written fit those of a symbol; 0 if they have nothing in common."""
    asked, said = words(wanted), aliases.words(written)
    if not asked or not said:
        return 0.5 if bool(asked) != bool(said) else 1.0
    common = len(asked & said)
    return max(0.01, common / len(asked | said) + _fit_scopes(wanted, written)) if common else 0.0


def _fit_scopes(wanted: str, written: str) -> float:
    """A little for each namespace that both name, and a little less for each that only the source names."""
    asked, said = _scopes(wanted), _scopes(written)
    return 0.01 * (len(asked & said) - len(said - asked))


@lru_cache(maxsize=20_000)
def _scopes(text: str) -> frozenset[str]:
    return frozenset(match.rstrip(": \t\n") for match in _NAMESPACES.findall(text)) - {"std"}
