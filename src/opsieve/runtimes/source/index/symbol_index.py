"""Which files may define a symbol: the definitions that the tree's text makes, ranked by how well they fit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Self

import msgspec

from opsieve.errors import InvalidFile
from opsieve.files import replacing_file
from opsieve.runtimes.source.index.build import FORMAT, build
from opsieve.runtimes.source.index.conditions import Defines
from opsieve.runtimes.source.index.learned import NOTHING_LEARNED, Learned
from opsieve.runtimes.source.index.records import Candidate, IndexData, Unplaced
from opsieve.runtimes.source.index.search import Search
from opsieve.runtimes.source.index.symbols import read_symbol

_MAX_NEAR = 5


class SymbolIndex:
    """Answers from the text of a tree alone. Immutable; safe to share between threads."""

    def __init__(self, data: IndexData) -> None:
        self._data = data
        self._search = Search(data)

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
        return self._search.candidates(read_symbol(symbol))

    def unplaced(self, symbol: str, referenced_by: Iterable[str] = (), learned: Learned = NOTHING_LEARNED) -> Unplaced:
        """Why no candidate is left for `symbol`: what was tried, and which files define something of the same name."""
        wanted = read_symbol(symbol)
        refuted = learned.refuted(symbol)
        tried = tuple(candidate for candidate in self.by_rules(symbol) if candidate.path in refuted)
        paths = {candidate.path for candidate in tried}
        near = self._search.namesakes(wanted)
        return Unplaced(
            symbol=symbol,
            demangled=wanted.demangled,
            referenced_by=tuple(sorted(set(referenced_by))),
            tried=(*tried, *(Candidate(path, "was compiled") for path in sorted(refuted - paths))),
            near=tuple(near[path] for path in sorted(near.keys() - paths - refuted)[:_MAX_NEAR]),
        )
