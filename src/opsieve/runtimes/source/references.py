"""Which sections of all objects refer to which: from it, the objects that a link will need are known before it.

A link pulls in what live code refers to, object by object. The same can be followed in a graph that is made once: nodes
are the sections of all objects, and one node for each object as a whole, which its static initialisers belong to. It is
a forecast that saves links, not the judge: what it misses, the link reports; what it has too much would be no more than
a static initialiser (the same template's code in several objects is taken from the first, as a linker does).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from opsieve.code.elf import SHF_ALLOC, Int64s
from opsieve.errors import InvalidFile
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.link.account.object_file import Bools, ObjectFile

_Int32s = npt.NDArray[np.int32]

_SHT_INIT_ARRAY, _SHT_PREINIT_ARRAY = 14, 16
_SHF_GNU_RETAIN = 1 << 21
_STB_LOCAL, _STB_WEAK = 0, 2
_INITIALISERS = rb"\.(?:ctors|init_array|preinit_array)[^\0]*"
_UNWINDING = rb"\.eh_frame[^\0]*"
_LARGEST_NAMES = 1 << 30


class _Names(msgspec.Struct, frozen=True):
    objects: list[str]
    symbols: dict[str, int]
    nowhere: list[str]


@dataclass(frozen=True)
class Forecast:
    """What a link is going to want."""

    sources: tuple[str, ...]
    """Whose objects it needs."""

    nowhere: frozenset[str]
    """What it refers to and no object defines: libraries do, or nobody does."""


@dataclass(frozen=True)
class References:
    """The graph as arrays: the targets of node n are `targets[starts[n]:starts[n + 1]]`."""

    objects: tuple[str, ...]
    """Source names; the node of object n as a whole is `first[n]`, and its sections follow in their order."""

    first: Int64s
    """One longer than `objects`."""

    symbols: Mapping[str, int]
    """Symbol -> the node that defines it, of every symbol that is defined in one object and wanted in another."""

    nowhere: tuple[str, ...]
    """Symbols that are wanted and that no object defines; their nodes follow those of the last object."""

    starts: Int64s
    targets: _Int32s

    def definer(self, symbol: str) -> str | None:
        """The source whose object defines a symbol; None if no object does."""
        node = self.symbols.get(symbol)
        return None if node is None else self.objects[self._object_of(np.array([node]))[0]]

    def forecast(self, sources: Iterable[str], symbols: Iterable[str], replaced: Iterable[str] = ()) -> Forecast:
        """What a link wants that starts from the objects of `sources` and keeps `symbols`.

        Definitions of `replaced` are taken from elsewhere.
        """
        number = {name: place for place, name in enumerate(self.objects)}
        begin = [int(self.first[number[name]]) for name in sources if name in number]
        begin += [self.symbols[symbol] for symbol in symbols if symbol in self.symbols]
        closed = [self.symbols[symbol] for symbol in replaced if symbol in self.symbols]
        live = self._reached(np.unique(np.array(begin, np.int64)), np.array(closed, np.int64))
        return Forecast(
            tuple(self.objects[place] for place in np.flatnonzero(live[self.first[:-1]])),
            frozenset(self.nowhere[place] for place in np.flatnonzero(live[self.first[-1] :])),
        )

    def _reached(self, frontier: Int64s, closed: Int64s) -> Bools:
        live: Bools = np.zeros(len(self.starts) - 1, np.bool_)
        live[closed] = True
        while len(frontier):
            live[frontier] = True
            starts = self.starts[frontier]
            counts = self.starts[frontier + 1] - starts
            offsets = np.repeat(starts - np.cumsum(counts) + counts, counts)
            found = np.unique(self.targets[offsets + np.arange(len(offsets))])
            frontier = found[~live[found]].astype(np.int64)
        return live

    def _object_of(self, nodes: Int64s) -> Int64s:
        found: Int64s = np.searchsorted(self.first, nodes, side="right") - 1
        return found

    @classmethod
    def build(cls, objects: Mapping[str, Path], extra: Collection[str] = (), progress: Progress = SILENT) -> References:
        """The graph of these objects; `extra` are symbols to know of that no object wants from another.

        Takes about 30 s for the 600 objects of PyTorch 2.6.0. Raises InvalidFile for what is no 64-bit object.
        """
        builder = _Builder()
        with progress.stage("reading what refers to what", len(objects)) as advance:
            for path in objects.values():
                builder.add(ObjectFile(path))
                advance(1)
        return builder.finished(tuple(objects), extra)

    def save(self, folder: Path) -> None:
        """Write into a new folder."""
        folder.mkdir()
        for name, table in (("first", self.first), ("starts", self.starts), ("targets", self.targets)):
            np.save(folder / f"{name}.npy", table)
        (folder / "names.msgpack").write_bytes(
            msgspec.msgpack.encode(_Names(list(self.objects), dict(self.symbols), list(self.nowhere)))
        )

    @classmethod
    def load(cls, folder: Path) -> References:
        """Read what `save` wrote. Raises InvalidFile for anything else."""
        try:
            if (folder / "names.msgpack").stat().st_size > _LARGEST_NAMES:
                raise InvalidFile("the names are too many", where=folder)
            names = msgspec.msgpack.decode((folder / "names.msgpack").read_bytes(), type=_Names)
            first, starts, targets = (_load(folder, name) for name in ("first", "starts", "targets"))
        except (OSError, ValueError, EOFError, msgspec.MsgspecError) as error:
            raise InvalidFile(f"cannot read what refers to what: {error}", where=folder) from error
        found = cls(
            tuple(names.objects),
            first.astype(np.int64),
            names.symbols,
            tuple(names.nowhere),
            starts.astype(np.int64),
            targets,
        )
        found._check(folder)
        return found

    def _check(self, folder: Path) -> None:
        nodes = len(self.starts) - 1
        numbers = np.fromiter(self.symbols.values(), np.int64, len(self.symbols))
        fine = (
            len(self.first) == len(self.objects) + 1
            and _rises(self.first, nodes - len(self.nowhere))
            and _rises(self.starts, len(self.targets))
            and _within(self.targets, nodes)
            and _within(numbers, nodes)
        )
        if not fine:
            raise InvalidFile("the table of what refers to what is damaged", where=folder)


class _Builder:
    """Takes objects one after the other; names are resolved at the end."""

    def __init__(self) -> None:
        self._first = [0]
        self._sources: list[Int64s] = []
        self._targets: list[Int64s] = []
        self._wanted: list[tuple[Int64s, list[bytes]]] = []
        self._strong: dict[bytes, int] = {}
        self._weak: dict[bytes, int] = {}

    def add(self, file: ObjectFile) -> None:
        """Add an object's sections, their references, and its symbols."""
        whole = self._first[-1]
        self._first.append(whole + len(file) + 1)
        self._define(file, whole + 1)
        sections = np.flatnonzero((file.sections["flags"] & SHF_ALLOC) > 0)
        self._edges(whole + 1 + sections, np.full(len(sections), whole))
        initialisers = _initialisers(file)
        self._edges(np.full(len(initialisers), whole), whole + 1 + initialisers)
        self._refer(file, whole + 1)

    def _define(self, file: ObjectFile, base: int) -> None:
        binding = file.symbols["info"] >> 4
        for table, chosen in ((self._weak, binding == _STB_WEAK), (self._strong, binding == 1)):
            numbers = np.flatnonzero(chosen & (file.symbol_section > 0))
            nodes = (file.symbol_section[numbers] + base).tolist()
            for name, node in zip(file.symbol_names(numbers), nodes, strict=True):
                table.setdefault(name, node)

    def _refer(self, file: ObjectFile, base: int) -> None:
        wanted = np.ones(len(file), np.bool_)
        wanted[file.named(_UNWINDING)] = False  # it refers to every function, and keeps none
        found = file.relocations(wanted)
        pairs = np.unique(found.section * len(file.symbols) + found.symbol)
        section, symbol = pairs // len(file.symbols), pairs % len(file.symbols)
        target = file.symbol_section[symbol]
        here = target > 0
        self._edges(section[here] + base, target[here] + base)
        # A weak reference pulls nothing in.
        elsewhere = (target == 0) & ((file.symbols["info"] >> 4)[symbol] != _STB_WEAK) & (symbol != 0)
        self._wanted.append((section[elsewhere] + base, file.symbol_names(symbol[elsewhere])))

    def _edges(self, sources: Int64s, targets: Int64s) -> None:
        self._sources.append(sources.astype(np.int64))
        self._targets.append(targets.astype(np.int64))

    def finished(self, objects: tuple[str, ...], extra: Collection[str]) -> References:
        """The graph of all that was added."""
        nowhere: dict[bytes, int] = {}
        used: dict[bytes, int] = {}
        for sources, names in self._wanted:
            nodes = [self._resolve(name) for name in names]
            for place, name in enumerate(names):
                if nodes[place] < 0:
                    nodes[place] = nowhere.setdefault(name, self._first[-1] + len(nowhere))
                else:
                    used[name] = nodes[place]
            self._edges(sources, np.array(nodes, np.int64))
        more = {name.encode(): self._resolve(name.encode()) for name in extra}
        used.update((name, node) for name, node in more.items() if node >= 0)
        symbols = {name.decode(errors="replace"): node for name, node in used.items()}
        missing = tuple(name.decode(errors="replace") for name in nowhere)
        first = np.array(self._first, np.int64)
        return References(objects, first, symbols, missing, *self._compressed(self._first[-1] + len(nowhere)))

    def _resolve(self, name: bytes) -> int:
        node = self._strong.get(name)
        return self._weak.get(name, -1) if node is None else node

    def _compressed(self, count: int) -> tuple[Int64s, _Int32s]:
        if not self._sources:
            return np.zeros(count + 1, np.int64), np.empty(0, np.int32)
        sources, targets = np.concatenate(self._sources), np.concatenate(self._targets)
        order = np.argsort(sources, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(sources, minlength=count)))).astype(np.int64)
        return starts, targets[order].astype(np.int32)


def _initialisers(file: ObjectFile) -> Int64s:
    """The sections that a linker keeps whatever refers to them."""
    kind, flags = file.sections["type"], file.sections["flags"]
    kept = (kind == _SHT_INIT_ARRAY) | (kind == _SHT_PREINIT_ARRAY) | ((flags & _SHF_GNU_RETAIN) > 0)
    kept[file.named(_INITIALISERS)] = True
    found: Int64s = np.flatnonzero(kept & ((flags & SHF_ALLOC) > 0))
    return found


def _load(folder: Path, name: str) -> npt.NDArray[np.int32]:
    table: npt.NDArray[np.int32] = np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False)
    if table.ndim != 1 or table.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise ValueError(f"{name} is no table of numbers")
    return table


def _rises(table: Int64s, end: int) -> bool:
    return len(table) > 0 and table[0] == 0 and table[-1] == end and bool((np.diff(table) >= 0).all())


def _within(table: npt.NDArray[np.integer], count: int) -> bool:
    return len(table) == 0 or (int(table.min()) >= 0 and int(table.max()) < count)
