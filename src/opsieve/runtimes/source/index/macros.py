"""The tree's own macros, and what a use of one stands for.

No list of PyTorch's macros is kept here: `TORCH_IMPL_FUNC`, `REGISTER_DISPATCH`, `C10_DEFINE_bool` and the rest mean
what the `#define` lines of the tree at hand say they mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from opsieve.runtimes.source.index.braces import body_end

MAX_EXPANSION = 400_000
"""Characters that the uses of macros in one declaration may come to."""

MAX_ROUNDS = 16
"""How deep macros may use each other."""

MAX_ALTERNATIVES = 4
"""Definitions of one macro (one for each platform, say) that are tried."""

MAX_WAYS = 12
"""Ways to expand one declaration that are tried."""

_DEFINE = re.compile(r"(\w+)(\(([\w\s,.]*)\))?\s*(.*)", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NAME_OR_BODY = re.compile(r"[A-Za-z_]\w*|\{")
_PASTE = re.compile(r"\s*##\s*")
_STRINGIZE = re.compile(r"(?<!#)#\s*([A-Za-z_]\w*)")
_BOUNDARY = re.compile(r"[(),{}\[\]]")


@dataclass(frozen=True, slots=True)
class Macro:
    """One `#define`; `parameters` is None for a macro without parentheses."""

    name: str
    parameters: tuple[str, ...] | None
    body: str

    def applied(self, arguments: list[str]) -> str:
        """The body with the arguments in place, `#` and `##` done."""
        parameters = self.parameters or ()
        values = dict(zip(parameters, arguments, strict=False))
        for index, parameter in enumerate(parameters):
            if parameter.endswith("..."):
                name = parameter[:-3] or "__VA_ARGS__"
                values[name] = ", ".join(arguments[index:])
        body = _STRINGIZE.sub('""', self.body)
        body = _IDENTIFIER.sub(lambda match: values.get(match.group(), match.group()), body)
        return _PASTE.sub("", body)


def read_macro(text: str) -> Macro | None:
    """The macro of a `#define` line, without the word `define`.

    None when it is malformed, or names itself: a macro is not expanded within itself, so it stands for its own name.
    """
    match = _DEFINE.match(text)
    if match is None:
        return None
    parameters = None
    if match.group(2) is not None:
        inside = re.sub(r"\s+", "", match.group(3))
        parameters = tuple(inside.split(",")) if inside else ()
    if match.group(1) in _IDENTIFIER.findall(match.group(4)):
        return None
    return Macro(match.group(1), parameters, match.group(4))


class MacroTable:
    """The macros that a file can use: its own, which come and go with its lines, over those of all headers."""

    def __init__(self, shared: Mapping[str, tuple[Macro, ...]]) -> None:
        self._shared = shared
        self._own: dict[str, Macro] = {}

    def define(self, macro: Macro) -> None:
        """Enter a `#define` of the file."""
        self._own[macro.name] = macro

    def undefine(self, name: str) -> None:
        """Follow an `#undef`."""
        self._own.pop(name, None)

    def _find(self, name: str, choices: _Choices) -> Macro | None:
        own = self._own.get(name)
        if own is not None:
            return own
        shared = self._shared.get(name)
        return choices.pick(name, shared) if shared else None

    def used(self, text: str) -> list[str]:
        """The names in `text` that are macros, in the order of the text."""
        own, shared = self._own, self._shared
        return [name for name in _IDENTIFIER.findall(text) if name in own or name in shared]

    def expansions(self, text: str) -> Iterator[str]:
        """`text` with its macros replaced, in each of the ways that the definitions of the shared ones allow."""
        seen: set[str] = set()
        number, ways = 0, 1
        while number < min(ways, MAX_WAYS):
            choices = _Choices(number)
            expanded = self._expand(text, choices)
            if expanded not in seen:
                seen.add(expanded)
                yield expanded
            number, ways = number + 1, max(ways, choices.ways)

    def _expand(self, text: str, choices: _Choices) -> str:
        for _ in range(MAX_ROUNDS):
            grown = self._once(text, choices)
            if len(grown) > MAX_EXPANSION or grown == text:
                break
            text = grown
        return text

    def _once(self, text: str, choices: _Choices) -> str:
        """Replace each use in the text, but not what that gives."""
        pieces: list[str] = []
        position = skip = 0
        for match in _NAME_OR_BODY.finditer(text):
            if match.start() < skip:
                continue
            if match.group() == "{":
                # Whoever reads the body expands what stands in it.
                skip = body_end(text, match.end())
                continue
            macro = self._find(match.group(), choices)
            if macro is None:
                continue
            call = (match.end(), list[str]()) if macro.parameters is None else _arguments(text, match.end())
            if call is not None:
                pieces += (text[position : match.start()], macro.applied(call[1]), " ")
                position = skip = call[0]
        return "".join(pieces) + text[position:]


class _Choices:
    """Which definition one expansion takes of each macro that has several: the digits of a number."""

    def __init__(self, number: int) -> None:
        self._rest = number
        self._picked: dict[str, Macro] = {}
        self.ways = 1

    def pick(self, name: str, alternatives: tuple[Macro, ...]) -> Macro:
        if len(alternatives) == 1:
            return alternatives[0]
        if name not in self._picked:
            self._rest, digit = divmod(self._rest, len(alternatives))
            self._picked[name] = alternatives[digit]
            self.ways *= len(alternatives)
        return self._picked[name]


def _arguments(text: str, position: int) -> tuple[int, list[str]] | None:
    """The end of a macro's parentheses, which open at or behind `position`, and the arguments in them."""
    while position < len(text) and text[position].isspace():
        position += 1
    if not text.startswith("(", position):
        return None
    depth, start, arguments = 0, position + 1, list[str]()
    for match in _BOUNDARY.finditer(text, position):
        mark = match.group()
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and mark == ","):
            arguments.append(text[start : match.start()].strip())
            start = match.end()
        if depth == 0:
            return match.end(), arguments
    return None
