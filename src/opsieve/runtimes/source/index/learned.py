"""What compiled objects have proved about the tree: which file defines a symbol, and which does not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Self

import msgspec

from opsieve.errors import InvalidFile
from opsieve.files import replacing_file

Facts = Mapping[str, frozenset[str]]

_FORMAT = 1


_Number = Annotated[int, msgspec.Meta(ge=0)]


class _Stored(msgspec.Struct):
    format: int
    files: list[str]
    proved: dict[str, list[_Number]]
    refuted: dict[str, list[_Number]]


class Learned(msgspec.Struct, frozen=True):
    """Facts by symbol. Merging is associative, commutative and idempotent: it is a union.

    A file that both does and does not define a symbol (it was changed, or compiled with other flags) counts as neither.
    """

    defines: dict[str, frozenset[str]] = {}
    lacks: dict[str, frozenset[str]] = {}

    @classmethod
    def from_object(cls, path: str, defined: Iterable[str], asked: Iterable[str] = ()) -> Self:
        """The facts of one object: what the source `path` defines, and which of the symbols `asked` for it does not.

        Give only the symbols worth remembering: those that other objects refer to, or an object's strong symbols.
        """
        there = frozenset(defined)
        one = frozenset((path,))
        return cls(dict.fromkeys(there, one), {symbol: one for symbol in asked if symbol not in there})

    def proved(self, symbol: str) -> frozenset[str]:
        """The files whose objects define `symbol`."""
        return self.defines.get(symbol, _NONE) - self.lacks.get(symbol, _NONE)

    def refuted(self, symbol: str) -> frozenset[str]:
        """The files whose objects do not define `symbol`."""
        return self.lacks.get(symbol, _NONE) - self.defines.get(symbol, _NONE)

    def merged(self, *others: Learned) -> Learned:
        """These facts and those of `others`."""
        everything = (self, *others)
        return Learned(_union(one.defines for one in everything), _union(one.lacks for one in everything))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read saved facts. Raises InvalidFile when the file holds none."""
        try:
            stored = msgspec.msgpack.decode(path.read_bytes(), type=_Stored)
            if stored.format != _FORMAT:
                raise InvalidFile("what was learned of the source tree was written by another version", where=path)
            return cls(_unpacked(stored.proved, stored.files), _unpacked(stored.refuted, stored.files))
        except (OSError, msgspec.MsgspecError, IndexError) as error:
            raise InvalidFile(f"cannot read what was learned of the source tree: {error}", where=path) from error

    def save(self, path: Path) -> None:
        """Write the facts, replacing what is there."""
        files = sorted({file for facts in (self.defines, self.lacks) for known in facts.values() for file in known})
        numbers = {file: number for number, file in enumerate(files)}
        stored = _Stored(_FORMAT, files, _packed(self.defines, numbers), _packed(self.lacks, numbers))
        with replacing_file(path, force=True) as temporary:
            temporary.write_bytes(msgspec.msgpack.encode(stored))


def _union(tables: Iterable[Facts]) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for table in tables:
        for symbol, files in table.items():
            found[symbol] = found[symbol] | files if symbol in found else files
    return found


def _packed(facts: Facts, numbers: Mapping[str, int]) -> dict[str, list[int]]:
    return {symbol: sorted(numbers[file] for file in facts[symbol]) for symbol in sorted(facts)}


def _unpacked(facts: Mapping[str, list[int]], files: list[str]) -> dict[str, frozenset[str]]:
    return {symbol: frozenset(files[number] for number in numbers) for symbol, numbers in facts.items()}


_NONE: frozenset[str] = frozenset()

NOTHING_LEARNED = Learned()
"""Before the first object."""
