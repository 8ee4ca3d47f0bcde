"""What a linker makes one of: equal constants and strings, and equal functions.

Constants of mergeable sections are kept one by one, and equal ones once. Equal functions that were folded have one
address in the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, ElfFile, Int64s
from opsieve.runtimes.source.link.account.marking import Live
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph

_SHF_WRITE, _SHF_MERGE, _SHF_STRINGS = 1, 0x10, 0x20
_STT_SECTION, _STT_FILE = 3, 4
CONSTANTS = 1


@dataclass(frozen=True)
class Merged:
    """Parts of the program that several sections share; by their number."""

    users: Int64s
    """Sections that use a part, and in parallel:"""

    parts: Int64s
    weights: Int64s
    """Bytes of each part by kind; a row for each part."""

    objects: Int64s
    """Of each part, the number of the object that it is put down to: the first live one."""

    emptied: Int64s
    """The sections whose bytes are those of parts now."""


def find_merged(graph: ProgramGraph, live: Live, weights: Int64s, program: ElfFile) -> Merged:
    """What is shared among the live sections; `weights` are their bytes by kind."""
    constants = _merged_constants(graph, live)
    functions = _folded(graph, live, weights, program, len(constants.weights))
    return Merged(*(np.concatenate([getattr(constants, name), getattr(functions, name)]) for name in _FIELDS))


_FIELDS = ("users", "parts", "weights", "objects", "emptied")


def _merged_constants(graph: ProgramGraph, live: Live) -> Merged:
    flags, width = graph.column("flags"), graph.column("entsize")
    mergeable = ((flags & _SHF_MERGE) > 0) & ((flags & _SHF_WRITE) == 0) & (width > 0) & (live.parents >= 0)
    count = len(graph.references.offsets)
    chosen = np.flatnonzero(mergeable[graph.targets[:count]] & (live.parents[graph.sources[:count]] >= 0))
    known: dict[tuple[int, int, bytes], int] = {}
    owners: list[int] = []
    users, parts = [], []
    pieces = _Pieces(graph, flags, width)
    columns = (graph.sources[chosen], graph.targets[chosen], graph.references.offsets[chosen])
    for user, section, offset in zip(*(column.tolist() for column in columns), strict=True):
        key = pieces.at(section, offset)
        if key not in known:
            known[key] = len(known)
            owners.append(section)
        users.append(user)
        parts.append(known[key])
    weights = np.zeros((len(known), 4), np.int64)
    weights[:, CONSTANTS] = [len(content) for _, _, content in known]
    objects = np.searchsorted(graph.first, np.array(owners, np.int64), "right") - 1
    emptied = np.flatnonzero(mergeable)
    return Merged(np.array(users, np.int64), np.array(parts, np.int64), weights, objects, emptied)


class _Pieces:
    """Constants of mergeable sections; equal ones have equal keys."""

    def __init__(self, graph: ProgramGraph, flags: Int64s, width: Int64s) -> None:
        self._graph, self._flags, self._width = graph, flags, width
        self._contents: dict[int, bytes] = {}

    def at(self, section: int, offset: int) -> tuple[int, int, bytes]:
        """The constant that lies at an offset: flags, width, contents."""
        flags, width = int(self._flags[section]), int(self._width[section])
        content = self._contents.get(section)
        if content is None:
            part, local = self._graph.place(section)
            content = self._contents[section] = part.contents(local).tobytes()
        if not flags & _SHF_STRINGS:
            start = offset // width * width
            return flags, width, content[start : start + width]
        # Characters of more than a byte are rare; their strings count from where they are used.
        start = content.rfind(b"\0", 0, offset) + 1 if width == 1 and offset > 0 else max(offset, 0)
        end = content.find(b"\0" * width, start)
        return flags, width, content[start : len(content) if end < 0 else end + width]


def _folded(graph: ProgramGraph, live: Live, weights: Int64s, program: ElfFile, first_part: int) -> Merged:
    by_address: dict[int, list[int]] = {}
    for section, address in _addresses(graph, live, program):
        by_address.setdefault(address, []).append(section)
    place = np.full(int(graph.first[-1]), -1)
    place[live.order] = np.arange(len(live.order))
    users: list[int] = []
    parts: list[int] = []
    rows: list[int] = []
    for sections in by_address.values():
        found = sorted(set(sections), key=lambda section: int(place[section]))
        if len(found) > 1:
            users += found
            parts += [first_part + len(rows)] * len(found)
            rows.append(int(place[found[0]]))
    own = np.array(rows, np.int64)
    objects = np.searchsorted(graph.first, live.order[own], "right") - 1
    return Merged(
        np.array(users, np.int64), np.array(parts, np.int64), weights[own], objects, np.array(users, np.int64)
    )


def _addresses(graph: ProgramGraph, live: Live, program: ElfFile) -> Iterator[tuple[int, int]]:
    """Live sections of read-only contents, and where the program has them, as far as a symbol tells."""
    address_of = _symbol_addresses(program)
    wanted = (live.parents >= 0) & (graph.column("size") > 0) & ((graph.column("flags") & _SHF_WRITE) == 0)
    wanted &= (graph.column("flags") & _SHF_MERGE) == 0
    for part, base in zip(graph.objects, graph.first.tolist(), strict=False):
        section, kind = part.symbol_section, part.symbols["info"] & 15
        named = (section > 0) & (kind != _STT_SECTION) & (kind != _STT_FILE) & (part.symbols["name"] > 0)
        numbers = np.flatnonzero(named & wanted[base + np.maximum(section, 0)])
        values = part.symbols["value"][numbers].astype(np.int64).tolist()
        places = (section[numbers] + base).tolist()
        for name, value, place in zip(part.symbol_names(numbers), values, places, strict=True):
            address = address_of.get(name)
            if address is not None:
                yield place, address - value


def _symbol_addresses(program: ElfFile) -> dict[bytes, int]:
    """The symbols that have one address, not several: functions of different files may have one local name."""
    symbols = program.symbols[program.symbols["shndx"] != SHN_UNDEF]
    if not len(symbols):
        return {}
    names, addresses = program.names_of(symbols["name"].astype(np.int64)), symbols["value"].tolist()
    found = dict(zip(names, addresses, strict=True))
    several = {name for name, address in zip(names, addresses, strict=True) if found[name] != address}
    return {name: address for name, address in found.items() if name not in several}
