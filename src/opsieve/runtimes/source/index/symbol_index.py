"""Which files may define a symbol: the definitions that the tree's text makes, ranked by how well they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from opsieve.errors import InvalidFile
from opsieve.files import replacing_file
from opsieve.runtimes.source.index.build import FORMAT, build
from opsieve.runtimes.source.index.conditions import Defines
from opsieve.runtimes.source.index.learned import NOTHING_LEARNED, Learned
from opsieve.runtimes.source.index.names import split_arguments
from opsieve.runtimes.source.index.records import Candidate, Definition, IndexData, Unplaced
from opsieve.runtimes.source.index.symbols import Symbol, SymbolKind, read_symbol
from opsieve.runtimes.source.index.types import Aliases, fit_arguments, fit_parameters

_FUNCTIONS = ("function", "instantiation", "template function")
MAX_CANDIDATES = 12
"""Files that are worth a compile for one symbol: the right one was always among the first three."""

_MAX_NEAR = 5
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


class SymbolIndex:
    """Answers from the text of a tree alone. Immutable; safe to share between threads."""

    def __init__(self, data: IndexData) -> None:
        self._data = data

    @classmethod
    def build(cls, files: Iterable[tuple[str, Path]], defines: Defines | None = None) -> Self:
        """Index files given as (the path to answer with, where the file is).

        Sources (`.cpp`, `.cc`, `.c`, ...) are what answers name; headers (`.h`, `.hpp`, `.inc`, ...) contribute macros,
        classes and type names. `defines` are the macros of the command line, those that differ between files with all
        their values (`CPU_CAPABILITY`: `DEFAULT`, `AVX2`). With them, what an `#if` leaves out ranks last; without
        them (None) nothing is known about any `#if`.
        Raises InvalidFile when a file cannot be read or is larger than any source file is.
        """
        return cls(build(files, defines))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a saved index. Raises InvalidFile when it is none, or was written by another version."""
        try:
            data = msgspec.msgpack.decode(path.read_bytes(), type=IndexData)
        except (OSError, msgspec.MsgspecError) as error:
            raise InvalidFile(f"cannot read the index of the source tree: {error}", where=path) from error
        if data.format != FORMAT:
            raise InvalidFile("the index of the source tree was written by another version", where=path)
        return cls(data)

    def save(self, path: Path) -> None:
        """Write the index, replacing what is there."""
        with replacing_file(path, force=True) as temporary:
            temporary.write_bytes(msgspec.msgpack.encode(self._data))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of all sources."""
        return self._data.files

    def candidates(self, symbol: str, learned: Learned = NOTHING_LEARNED) -> tuple[Candidate, ...]:
        """The files that may define `symbol` (as the linker knows it), the likeliest first, each once.

        What `learned` says of an object outranks every rule; files that are known not to define it are left out.
        """
        refuted = learned.refuted(symbol)
        known = [Candidate(path, "its object defines it") for path in sorted(learned.proved(symbol))]
        found = {candidate.path: candidate for candidate in known}
        for candidate in self.by_rules(symbol):
            if candidate.path not in refuted:
                found.setdefault(candidate.path, candidate)
        return tuple(found.values())

    def by_rules(self, symbol: str) -> tuple[Candidate, ...]:
        """The same from text alone."""
        wanted = read_symbol(symbol)
        ranked = sorted(((self._rank(wanted, match), match) for match in self._matches(wanted)), key=itemgetter(0))
        found: dict[str, Candidate] = {}
        for rank, match in ranked:
            path = self._data.files[match.definition.file]
            # Another specialisation is no candidate: there are hundreds of `DispatchStub<...>::DEFAULT`.
            if rank.arguments < 0 and len(found) < MAX_CANDIDATES:
                found.setdefault(path, Candidate(path, _rule(match)))
        return tuple(found.values())

    def unplaced(self, symbol: str, referenced_by: Iterable[str] = (), learned: Learned = NOTHING_LEARNED) -> Unplaced:
        """Why no candidate is left for `symbol`: what was tried, and which files define something of the same name."""
        wanted = read_symbol(symbol)
        refuted = learned.refuted(symbol)
        tried = tuple(candidate for candidate in self.by_rules(symbol) if candidate.path in refuted)
        paths = {candidate.path for candidate in tried}
        near = {
            self._data.files[definition.file]: Candidate(self._data.files[definition.file], f"defines {key}")
            for key in self._by_last.get(wanted.parts[-1], ())
            for definition in self._data.definitions[key]
        }
        return Unplaced(
            symbol=symbol,
            demangled=wanted.demangled,
            referenced_by=tuple(sorted(set(referenced_by))),
            tried=(*tried, *(Candidate(path, "was compiled") for path in sorted(refuted - paths))),
            near=tuple(near[path] for path in sorted(near.keys() - paths - refuted)[:_MAX_NEAR]),
        )

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
