"""Finding the definitions that a symbol may be, and ranking them by how well they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

from opsieve.runtimes.source.index.names import split_arguments
from opsieve.runtimes.source.index.records import Candidate, Definition, IndexData
from opsieve.runtimes.source.index.symbols import Symbol, SymbolKind
from opsieve.runtimes.source.index.types import Aliases, fit_arguments, fit_parameters

MAX_CANDIDATES = 12
"""Files that are worth a compile for one symbol: in PyTorch 2.6 the right one is always among the first three."""

# By preference.
_FUNCTIONS = ("function", "instantiation", "template function")
_VARIABLES = ("variable", "instantiation", "possible variable")


@dataclass(frozen=True, slots=True)
class _Match:
    """A definition, and how it was come upon."""

    definition: Definition
    how: str
    nearness: int
    """3: the name itself, 2: its class is instantiated, 1: the name by another way, 0: a member of its class."""

    arguments: str = ""
    """Template arguments that the definition writes under another name."""


class _Rank(NamedTuple):
    """What decides, in this order; smaller is better."""

    nearness: int
    left_out: bool
    """An `#if` leaves the definition out."""

    other_number: bool
    """The function has another number of parameters."""

    arguments: float
    parameters: float
    kind: int
    uncertain: int
    file: int


class Search:
    """Looks symbols up in an index."""

    def __init__(self, data: IndexData) -> None:
        self._data = data

    def candidates(self, symbol: Symbol) -> tuple[Candidate, ...]:
        """The files that may define `symbol`, the likeliest first, each once."""
        ranked = sorted(((self._rank(symbol, match), match) for match in self._matches(symbol)), key=itemgetter(0))
        found: dict[str, Candidate] = {}
        for rank, match in ranked:
            path = self._data.files[match.definition.file]
            # Another specialisation is no candidate: there are hundreds of `DispatchStub<...>::DEFAULT`.
            if rank.arguments < 0 and len(found) < MAX_CANDIDATES:
                found.setdefault(path, Candidate(path, _rule(match)))
        return tuple(found.values())

    def namesakes(self, symbol: Symbol) -> dict[str, Candidate]:
        """Files that define anything of the same last name, by path."""
        return {
            self._data.files[definition.file]: Candidate(self._data.files[definition.file], f"defines {key}")
            for key in self._by_last.get(symbol.parts[-1], ())
            for definition in self._data.definitions[key]
        }

    def _matches(self, symbol: Symbol) -> Iterator[_Match]:
        if symbol.kind is SymbolKind.CLASS:
            yield from self._class_matches(symbol)
            return
        exact = False
        for definition in self._data.definitions.get(symbol.key, ()):
            if _fits_kind(symbol, definition):
                exact = True
                yield _Match(definition, "", 3)
        for length in range(len(symbol.parts) - 1, 0, -1):
            for definition in self._data.definitions.get("::".join(symbol.parts[:length]), ()):
                if definition.kind == "class instantiation":
                    yield _Match(definition, "", 2)
        if not exact:
            yield from self._elsewhere(symbol)

    def _class_matches(self, symbol: Symbol) -> Iterator[_Match]:
        key = symbol.key
        function = self._data.classes.get(key)
        if function:
            for definition in self._data.definitions.get(f"{key}::{split_arguments(function)[0]}", ()):
                yield _Match(definition, f"the key function {function}", 3)
        for definition in self._data.definitions.get(key, ()):
            if definition.kind == "class instantiation":
                yield _Match(definition, "", 2)
        for member in self._members.get(key, ()):
            for definition in self._data.definitions[member]:
                yield _Match(definition, f"a member, {member.rpartition('::')[2]}", 0)

    def _elsewhere(self, symbol: Symbol) -> Iterator[_Match]:
        """The same name where a namespace is inline or comes in by `using`, or a class goes by another name."""
        if symbol.kind is SymbolKind.C:
            return
        for key in self._by_last.get(symbol.parts[-1], ()):
            parts, arguments = self._without_aliases(key)
            if _is_within(parts, symbol.parts):
                for definition in self._data.definitions[key]:
                    if _fits_kind(symbol, definition):
                        yield _Match(definition, f"under the name {key}", 1, arguments)

    def _without_aliases(self, key: str) -> tuple[list[str], str]:
        """The parts of a name with `using A = B<C>` followed in its scopes, and the template arguments met there."""
        *scopes, last = key.split("::")
        parts, arguments = [], []
        for scope in scopes:
            meanings = self._data.aliases.get(scope, ())
            meaning, extra = split_arguments(meanings[0]) if len(meanings) == 1 else (scope, "")
            parts.append(meaning.rpartition("::")[2])
            arguments.append(extra)
        return [*parts, last], " ".join(arguments)

    def _rank(self, symbol: Symbol, match: _Match) -> _Rank:
        definition = match.definition
        fit = 1.0
        if symbol.parameters is not None and definition.parameters is not None:
            fit = fit_parameters(symbol.parameters, definition.parameters, self._aliases)
        arguments = fit_arguments(symbol.arguments, definition.arguments + match.arguments, self._aliases)
        order = _VARIABLES if symbol.kind is SymbolKind.VARIABLE else _FUNCTIONS
        return _Rank(
            nearness=-match.nearness,
            left_out=definition.certainty == 0,
            other_number=fit == 0,
            arguments=-round(arguments, 3),
            parameters=-round(fit, 3),
            kind=order.index(definition.kind) if definition.kind in order else len(order),
            uncertain=-definition.certainty,
            file=definition.file,
        )

    @cached_property
    def _aliases(self) -> Aliases:
        return Aliases(self._data.aliases)

    @cached_property
    def _by_last(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in self._data.definitions:
            found.setdefault(key.rpartition("::")[2], []).append(key)
        return found

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in self._data.definitions:
            found.setdefault(key.rpartition("::")[0], []).append(key)
        return found


def _fits_kind(symbol: Symbol, definition: Definition) -> bool:
    if symbol.kind is SymbolKind.FUNCTION:
        return definition.kind in _FUNCTIONS
    if symbol.kind is SymbolKind.VARIABLE:
        return definition.kind in _VARIABLES
    return definition.kind != "class instantiation"


def _is_within(short: Iterable[str], long: Iterable[str]) -> bool:
    """Whether the parts of one name are those of the other in order, with some left out."""
    rest = iter(long)
    return all(part in rest for part in short)


def _rule(match: _Match) -> str:
    definition = match.definition
    text = "explicit " + definition.kind if "instantiation" in definition.kind else definition.kind
    text = f"{text} by {definition.macro}" if definition.macro else f"{text} definition"
    return f"{text} ({match.how})" if match.how else text
