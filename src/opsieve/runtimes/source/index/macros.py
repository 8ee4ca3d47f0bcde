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
    """The macro of a `#define` line, without the word `define`; None when it is malformed."""
    match = _DEFINE.match(text)
    if match is None:
        return None
    parameters = None
    if match.group(2) is not None:
        inside = re.sub(r"\s+", "", match.group(3))
        parameters = tuple(inside.split(",")) if inside else ()
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

    def _find(self, name: str, choice: int) -> Macro | None:
        own = self._own.get(name)
        if own is not None:
            return own
        shared = self._shared.get(name)
        return shared[min(choice, len(shared) - 1)] if shared else None

    def used(self, text: str) -> list[str]:
        """The names in `text` that are macros, in the order of the text."""
        own, shared = self._own, self._shared
        return [name for name in _IDENTIFIER.findall(text) if name in own or name in shared]

    def expansions(self, text: str) -> Iterator[str]:
        """`text` with its macros replaced, once for each definition that the shared ones may have."""
        seen: set[str] = set()
        for choice in range(MAX_ALTERNATIVES):
            expanded, alternatives = self._expand(text, choice)
            if expanded not in seen:
                seen.add(expanded)
                yield expanded
            if alternatives <= choice + 1:
                break

    def _expand(self, text: str, choice: int) -> tuple[str, int]:
        alternatives = 1
        for _ in range(MAX_ROUNDS):
            pieces: list[str] = []
            position = 0
            skip = 0
            for match in _NAME_OR_BODY.finditer(text):
                if match.start() < skip:
                    continue
                if match.group() == "{":
                    # Whoever reads the body expands what stands in it.
                    skip = body_end(text, match.end())
                    continue
                macro = self._find(match.group(), choice)
                if macro is None:
                    continue
                end, arguments = match.end(), list[str]()
                if macro.parameters is not None:
                    call = _arguments(text, end)
                    if call is None:
                        continue
                    end, arguments = call
                alternatives = max(alternatives, len(self._shared.get(macro.name, ())))
                pieces += (text[position : match.start()], macro.applied(arguments), " ")
                position = skip = end
            if not pieces:
                break
            grown = "".join(pieces) + text[position:]
            if len(grown) > MAX_EXPANSION or grown == text:
                break
            text = grown
        return text, alternatives


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
