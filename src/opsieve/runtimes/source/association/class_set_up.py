"""Which function registers which custom class, so that a schema brings only the classes that it names.

In `TORCH_LIBRARY(quantized, m)` calls such as `register_conv_params<2>()` stand in front of all schemas. The name of a
class is a literal in the body of such a function, or of a function of the same file that it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.association.cpp_text import CppText

MARK = "class_<"
"""What a file has that registers classes."""

_FUNCTION = re.compile(r"\b([A-Za-z_]\w*)\s*\([^(){};]*\)\s*\{")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")
_WORD = re.compile(r'"(\w+)"')
_NUMBER = re.compile(r"\d+")
_CLASS = re.compile(r"\btorch\.classes\.(?:\w+\.)*(\w+)")
_CALL = re.compile(r"(?:\w+::)*(?P<name>\w+)(?:<(?P<arguments>[\w, ]*)>)?\s*\(")


class SetUps:
    """What each function that registers classes may call them; `words` by the function's name without namespaces."""

    def __init__(self, words: Mapping[str, frozenset[str]]) -> None:
        self._words = words

    @classmethod
    def read(cls, sources: Iterable[CppText]) -> SetUps:
        """Read the files that register classes."""
        words: dict[str, frozenset[str]] = {}
        for source in sources:
            for name, found in _words(source).items():
                words[name] = words.get(name, frozenset()) | found
        return cls(words)

    def needed(self, schema: str, calls: tuple[str, ...]) -> tuple[str, ...]:
        """Those of the calls that register what the schema names, and those of which nobody knows what they do.

        All of them, if none registers a class that it names.
        """
        names = _CLASS.findall(schema)
        needed = {call for call in calls if self._of(call) is None}
        for name in names:
            fitting = [call for call in calls if name in (self._of(call) or ())]
            exact = [call for call in fitting if _numbers(call) <= frozenset(_NUMBER.findall(name))]
            if not fitting:
                return calls
            needed.update(exact or fitting)
        return tuple(call for call in calls if call in needed)

    def _of(self, call: str) -> frozenset[str] | None:
        match = _CALL.match(call)
        return self._words.get(match["name"]) if match else None


def _numbers(call: str) -> frozenset[str]:
    """The numbers among the template arguments: `register_conv_params<2>` registers `Conv2d...`."""
    match = _CALL.match(call)
    return frozenset(_NUMBER.findall(match["arguments"] or "")) if match else frozenset()


def _words(source: CppText) -> dict[str, frozenset[str]]:
    bodies: dict[str, tuple[int, int]] = {}
    for match in _FUNCTION.finditer(source.plain):
        try:
            bodies.setdefault(match[1], (match.end(), source.closing(match.end() - 1)))
        except InvalidFile:  # brackets that only some branch of an #if closes
            continue
    found = {}
    for name, (start, end) in bodies.items():
        if MARK in source.plain[start:end]:
            parts = [bodies[called] for called in set(_CALLED.findall(source.plain, start, end)) if called in bodies]
            found[name] = frozenset(
                word for a, b in [(start, end), *parts] for word in _WORD.findall(source.text, a, b)
            )
    return found
