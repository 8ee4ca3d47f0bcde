"""One file's definitions, by following braces through namespaces, `extern "C"` and the branches of `#if`."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from opsieve.runtimes.source.index import heads
from opsieve.runtimes.source.index.braces import body_end
from opsieve.runtimes.source.index.branches import CONDITIONAL, Branches
from opsieve.runtimes.source.index.classes import key_functions
from opsieve.runtimes.source.index.conditions import Conditions
from opsieve.runtimes.source.index.declarators import has_initialiser
from opsieve.runtimes.source.index.macros import MacroTable, read_macro
from opsieve.runtimes.source.index.names import split_arguments
from opsieve.runtimes.source.index.text import Event, Unit

MAX_EXPANDED = 4_000_000
"""Characters that all uses of macros in one file may come to."""

_TOKEN = re.compile(r"[{};]")
_MAX_SCOPES = 64
_MAX_EXPANSION_DEPTH = 8


class Found(NamedTuple):
    """One definition; see records.Definition."""

    key: str
    """The qualified name without template arguments."""

    kind: str
    arguments: str
    parameters: str | None
    macro: str
    certainty: int


@dataclass(frozen=True, slots=True)
class _Scope:
    path: tuple[str, ...] = ()
    c: bool = False
    """Whether names are C's: not qualified."""


class Scanner:
    """Reads one file. `classes` maps each class with virtual functions to its key function (empty: it has none).

    `c` is for a file in C; of a `header` only classes and functions that are not inline are of interest.
    """

    def __init__(self, macros: MacroTable, conditions: Conditions, *, c: bool = False, header: bool = False) -> None:
        self._macros = macros
        self._conditions = conditions
        self._branches: Branches[tuple[_Scope, ...]] = Branches(conditions)
        self._scopes: tuple[_Scope, ...] = (_Scope(c=c),)
        self._header = header
        self._depth = self._expanded = 0
        self.found: list[Found] = []
        self.classes: dict[str, str] = {}

    def scan(self, unit: Unit) -> None:
        """Collect what `unit` defines."""
        self._branches = Branches(self._conditions.but_for(unit.defined))
        if not self._header:
            self._instances(unit.events)
        self._read(unit.code, unit.events, "")

    def _instances(self, events: Sequence[Event]) -> None:
        """Names for the function of an included text: `#define NAME f_8`, `#include "f.h"`, and again for `f_16`."""
        named: dict[str, dict[str, None]] = {}
        for event in events:
            macro = read_macro(event.text) if event.kind == "define" else None
            if macro is not None and macro.parameters is None and macro.body.isidentifier():
                named.setdefault(macro.name, {})[macro.body] = None
        for macro_name, names in named.items():
            if len(names) > 1:
                self.found += [Found(name, "function", "", None, macro_name, 1) for name in names]

    def _read(self, code: str, events: Sequence[Event], macro: str) -> None:
        """Read a file, or what a macro stands for. `pending` is what of a declaration was already read."""
        start = position = index = 0
        pending = ""
        while True:
            match = _TOKEN.search(code, position)
            stop = match.start() if match else len(code)
            while index < len(events) and events[index].at <= stop:
                # What stands before a directive is read before it takes effect.
                if events[index].at > start:
                    pending = self._complete(pending + code[start : events[index].at], macro)[0][-heads.MAX_HEAD :]
                    start = events[index].at
                self._follow(events[index])
                index += 1
            text = pending + code[start:stop]
            if match is None:
                self._complete(text, macro)
                return
            position = match.end()
            if text.count("(") > text.count(")") and len(text) < heads.MAX_HEAD:
                if match.group() == "{":
                    position = body_end(code, position)
                continue
            pending = ""
            if match.group() == "{":
                opened = self._open(text, code, position, macro)
                if opened is not None:
                    pending = opened
                    position, index = self._skip(code, position, events, index)
            else:
                self._end(text, macro, closes=match.group() == "}")
            start = position

    def _follow(self, event: Event) -> None:
        """Take note of one directive."""
        if event.kind == "define":
            macro = read_macro(event.text)
            if macro is not None:
                self._macros.define(macro)
        elif event.kind == "undef":
            self._macros.undefine(event.text)
        else:
            self._scopes = self._branches.follow(event, self._scopes)

    def _complete(self, text: str, macro: str) -> list[str]:
        """Expand macros, read the statements that this makes whole, and give what remains, for each way to expand."""
        names = self._macros.used(text)
        if not names or self._depth > _MAX_EXPANSION_DEPTH or self._expanded > MAX_EXPANDED:
            return [text]
        at = text.find(names[0])
        if text.count("(", 0, at) > text.count(")", 0, at):
            return [text]
        remains = []
        self._depth += 1
        for expanded in self._macros.expansions(text):
            self._expanded += len(expanded)
            cut = max(expanded.rfind(mark) for mark in "{};") + 1
            if cut:
                self._read(expanded[:cut], (), macro or names[0])
            remains.append(expanded[cut:])
        self._depth -= 1
        return remains

    def _end(self, text: str, macro: str, *, closes: bool) -> None:
        """Read what ends with a semicolon, or with the brace that closes a scope."""
        for head in self._complete(text, macro):
            c, plain = heads.linkage(heads.plain(head[: heads.MAX_HEAD]))
            if plain and not closes and not self._header:
                self._record(heads.statement(plain), c, self._made_by(text, head, macro))
        if closes and len(self._scopes) > 1:
            self._scopes = self._scopes[:-1]

    def _open(self, text: str, code: str, position: int, macro: str) -> str | None:
        """Read what begins with a brace: None if it is a scope to go into, else what is pending behind its end."""
        alternatives = [head[-heads.MAX_HEAD :] for head in self._complete(text, macro)]
        c, head = heads.linkage(heads.plain(alternatives[0]))
        scope, name = self._scopes[-1], heads.namespace_name(head) if "namespace" in head else None
        if (name or (c and not head)) and len(self._scopes) < _MAX_SCOPES:
            inner = replace(scope, path=scope.path + tuple(name.split("::"))) if name else replace(scope, c=True)
            self._scopes = (*self._scopes, inner)
            return None
        if name is not None:
            # Nobody can refer to what stands in a namespace without a name.
            return ""
        class_name = heads.class_name(head)
        if class_name is not None:
            self._class(code, position, class_name)
            return ""
        if heads.is_member_initialiser(head):
            return head + "()"
        if "(" not in head or has_initialiser(head):
            return head + " = "
        if self._header and heads.is_inline(head):
            return ""
        for alternative in alternatives:
            c, head = heads.linkage(heads.plain(alternative))
            self._record(heads.function(head), c, self._made_by(text, alternative, macro))
        return ""

    def _class(self, code: str, position: int, name: str) -> None:
        end = body_end(code, position)
        if not name or (code.find("virtual", position, end) < 0 and code.find("override", position, end) < 0):
            return
        for inner, function in key_functions(code, position, end - 1, "::".join((*self._scopes[-1].path, name))):
            key = split_arguments(inner)[0]
            if function or key not in self.classes:
                self.classes[key] = function

    def _skip(self, code: str, position: int, events: Sequence[Event], index: int) -> tuple[int, int]:
        """Pass over a body, taking note of its directives."""
        end = body_end(code, position)
        stop = bisect_left(events, end, lo=index, key=_offset)
        if any(event.kind in CONDITIONAL for event in events[index:stop]):
            end = self._branches.body_end(code, position, events, index)
            stop = bisect_left(events, end, lo=index, key=_offset)
        for event in events[index:stop]:
            self._follow(event)
        return end, stop

    def _made_by(self, text: str, head: str, macro: str) -> str:
        """The outermost macro whose use in `text` gave `head`, empty if none did."""
        if macro or text.endswith(head):
            return macro
        return next(iter(self._macros.used(text)), "")

    def _record(self, declared: heads.Declared | None, c: bool, macro: str) -> None:
        if declared is None:
            return
        name, arguments = split_arguments(declared.name)
        scope = self._scopes[-1]
        key = name if c or scope.c else _qualified(scope.path, name)
        self.found.append(Found(key, declared.kind, arguments, declared.parameters, macro, self._branches.certainty))


def _qualified(path: tuple[str, ...], name: str) -> str:
    """The full name of what is declared in a namespace as `name`, which may begin with an enclosing namespace."""
    first, *rest = name.split("::")
    if rest and first in path:
        path = path[: len(path) - 1 - path[::-1].index(first)]
    return name[2:] if rest and not first else "::".join((*path, name))


def _offset(event: Event) -> int:
    return event.at
