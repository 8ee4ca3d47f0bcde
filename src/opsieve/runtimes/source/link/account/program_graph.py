"""All objects of a link as one graph: which input section refers to which.

Symbols are resolved as a linker does it: of several COMDAT groups of one name the first is used, a strong definition
wins over a weak one, and of equals the first. (Generic ABI, chapter 4, "Section Groups" and "Symbol Table".)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path

import numpy as np

from opsieve.code.elf import SHF_ALLOC, Int64s
from opsieve.runtimes.source.link.account.frames import EH_FRAME, INDEX_ENTRY, Frames, read_frames
from opsieve.runtimes.source.link.account.object_file import Bools, Groups, ObjectFile, Relocations

_SHF_LINK_ORDER, _SHF_EXCLUDE = 0x80, 0x80000000
_STB_LOCAL, _STB_WEAK = 0, 2
_STT_SECTION = 3


@dataclass(frozen=True)
class ProgramGraph:
    """Input sections by number: those of the first object first. An edge says that one keeps the other alive."""

    objects: tuple[ObjectFile, ...]
    first: Int64s
    """The number of each object's first section, and behind the last the number of all."""

    used: Bools
    """Of each section: whether it is part of the image, if it is live; not so the copies of COMDAT groups."""

    sources: Int64s
    targets: Int64s
    references: References
    frame_sizes: Int64s
    """Bytes that a section's functions take in the unwinding tables."""

    frame_roots: Int64s
    """Sections that the descriptions of frames refer to and that are in no group: tables of handlers."""

    common_roots: Int64s
    """Sections that these descriptions share: personality routines."""

    definitions: dict[bytes, int]
    """Symbol -> the section that defines it for all objects."""

    def place(self, section: int) -> tuple[ObjectFile, int]:
        """The object of a section, and its number there."""
        number = int(np.searchsorted(self.first, section, "right")) - 1
        return self.objects[number], section - int(self.first[number])

    def column(self, name: str) -> Int64s:
        """A field of all section headers."""
        return np.concatenate([found.sections[name] for found in self.objects] or [np.empty(0, np.int64)]).astype(
            np.int64
        )


@dataclass(frozen=True)
class References:
    """Where the edges that are relocations point to, in parallel to the first edges of the graph."""

    offsets: Int64s
    """Into the section that is referred to."""


def read_program(paths: Sequence[Path]) -> ProgramGraph:
    """Read the objects of a link, in its order. Raises InvalidFile for an object that is malformed."""
    objects = tuple(ObjectFile(path) for path in paths)
    first = np.cumsum([0, *(len(found) for found in objects)])
    groups = [found.groups() for found in objects]
    used = [_used(found, kept) for found, kept in zip(objects, _first_groups(objects, groups), strict=True)]
    definitions = _definitions(objects, used, first)
    parts = [
        _Part(found, keep, group, int(base), definitions)
        for found, keep, group, base in zip(objects, used, groups, first, strict=False)
    ]
    edges = [part.edges() for part in parts]
    sizes = np.zeros(int(first[-1]), np.int64)
    for part in parts:
        np.add.at(sizes, part.frame_functions, part.frame_bytes)
    return ProgramGraph(
        objects,
        first,
        np.concatenate(used) if used else np.zeros(0, bool),
        np.concatenate([_EMPTY, *(part.sources for part in parts), *(found[0] for found in edges)]),
        np.concatenate([_EMPTY, *(part.targets for part in parts), *(found[1] for found in edges)]),
        References(np.concatenate([_EMPTY, *(part.offsets for part in parts)])),
        sizes,
        np.unique(np.concatenate([_EMPTY, *(part.frame_roots for part in parts)])),
        np.unique(np.concatenate([_EMPTY, *(part.common_roots for part in parts)])),
        definitions,
    )


_EMPTY = np.empty(0, np.int64)


def _first_groups(objects: Sequence[ObjectFile], groups: Sequence[Groups]) -> list[Bools]:
    """Of each object's sections, whether no earlier object has brought their group."""
    seen: dict[bytes, int] = {}
    result = []
    for number, (found, group) in enumerate(zip(objects, groups, strict=True)):
        names = [name for name, comdat in zip(group.signatures, group.comdat.tolist(), strict=True) if comdat]
        owners = np.full(len(group.signatures), number)
        owners[group.comdat] = list(map(seen.setdefault, names, repeat(number)))
        kept = np.ones(len(found), bool)
        kept[group.members[owners[group.owner] != number]] = False
        result.append(kept)
    return result


def _used(found: ObjectFile, kept: Bools) -> Bools:
    flags = found.sections["flags"]
    used: Bools = kept & ((flags & SHF_ALLOC) > 0) & ((flags & _SHF_EXCLUDE) == 0)
    return used


def _definitions(objects: Sequence[ObjectFile], used: Sequence[Bools], first: Int64s) -> dict[bytes, int]:
    """The first strong definition of each name, else the first weak one."""
    weak_ones: dict[bytes, int] = {}
    strong_ones: dict[bytes, int] = {}
    for found, keep, base in reversed(list(zip(objects, used, first.tolist(), strict=False))):
        section = found.symbol_section
        binding = found.symbols["info"] >> 4
        defined = (binding != _STB_LOCAL) & (section > 0) & keep[np.maximum(section, 0)]
        for place, chosen in ((weak_ones, binding == _STB_WEAK), (strong_ones, binding != _STB_WEAK)):
            numbers = np.flatnonzero(defined & chosen)
            place.update(zip(found.symbol_names(numbers), (section[numbers] + base).tolist(), strict=True))
    return weak_ones | strong_ones


class _Part:
    """One object's part of the graph."""

    def __init__(
        self, found: ObjectFile, used: Bools, groups: Groups, base: int, definitions: dict[bytes, int]
    ) -> None:
        self._object, self._used, self._groups, self._base = found, used, groups, base
        unwinding = np.array([number for number in found.named(EH_FRAME) if used[number]], np.int64)
        relocations = found.relocations(used)
        targets = self._targets(definitions)
        in_table = np.isin(relocations.section, unwinding)
        self._take_references(relocations, targets, ~in_table)
        self._take_frames(relocations, targets, unwinding)
        # Each frame lives with its function; the section as a whole is nothing that could be dropped.
        used[unwinding] = False

    def edges(self) -> tuple[Int64s, Int64s]:
        """What is no relocation: members of one group, sections in the order of another, frames of functions."""
        ring_from, ring_to = self._rings()
        flags = self._object.sections["flags"]
        ordered = np.flatnonzero(self._used & ((flags & _SHF_LINK_ORDER) > 0))
        after = self._object.sections["link"][ordered].astype(np.int64)
        valid = (after > 0) & (after < len(self._object))
        return (
            np.concatenate([ring_from, after[valid] + self._base, self._frame_sources]),
            np.concatenate([ring_to, ordered[valid] + self._base, self._frame_targets]),
        )

    def _targets(self, definitions: dict[bytes, int]) -> Int64s:
        """Of each symbol the section it stands for, -1 for none: a library's, or a weak one that is missing."""
        found = self._object
        section = found.symbol_section
        keep = self._used[np.maximum(section, 0)]
        local = (found.symbols["info"] >> 4) == _STB_LOCAL
        targets = np.where((section > 0) & keep, section + self._base, -1)
        outside = np.flatnonzero(~local & (found.symbols["name"] > 0))
        names = found.symbol_names(outside)
        targets[outside] = list(map(definitions.get, names, repeat(-1)))
        return targets

    def _take_references(self, relocations: Relocations, targets: Int64s, wanted: Bools) -> None:
        target = targets[relocations.symbol]
        chosen = np.flatnonzero(wanted & (target >= 0))
        symbols = self._object.symbols[relocations.symbol[chosen]]
        is_section = (symbols["info"] & 15) == _STT_SECTION
        self.sources = relocations.section[chosen] + self._base
        self.targets = target[chosen]
        self.offsets = symbols["value"].astype(np.int64) + np.where(is_section, relocations.addend[chosen], 0)

    def _take_frames(self, relocations: Relocations, targets: Int64s, unwinding: Int64s) -> None:
        sources, wanted, functions, sizes, roots, shared = ([_EMPTY] for _ in range(6))
        for number in unwinding.tolist():
            part, frames = _frames(self._object, number, relocations)
            target = targets[part.symbol]
            function, handlers = target[frames.functions], target[frames.further]
            functions.append(function[function >= 0])
            sizes.append(frames.sizes[function >= 0] + INDEX_ENTRY)
            known = (handlers >= 0) & (target[frames.further_of] >= 0)
            sources.append(target[frames.further_of][known])
            wanted.append(handlers[known])
            common = target[frames.common]
            shared.append(common[common >= 0])
            roots.append(handlers[(handlers >= 0) & ~self._rides_along(handlers)])
        self._frame_sources, self._frame_targets = np.concatenate(sources), np.concatenate(wanted)
        self.frame_functions, self.frame_bytes = np.concatenate(functions), np.concatenate(sizes)
        self.frame_roots, self.common_roots = np.concatenate(roots), np.concatenate(shared)

    def _rides_along(self, sections: Int64s) -> Bools:
        """Whether a section is kept or dropped with another: in a group, or in the order of another, or code."""
        number = np.clip(sections - self._base, 0, len(self._object) - 1)
        grouped = np.zeros(len(self._object), bool)
        grouped[self._groups.members] = True
        flags = self._object.sections["flags"][number]
        return grouped[number] | ((flags & (_SHF_LINK_ORDER | 4)) > 0)

    def _rings(self) -> tuple[Int64s, Int64s]:
        """Each member of a group keeps the next, the last the first."""
        kept = self._used[self._groups.members]
        members, owner = self._groups.members[kept] + self._base, self._groups.owner[kept]
        if not len(members):
            return _EMPTY, _EMPTY
        starts = np.append(0, np.flatnonzero(owner[1:] != owner[:-1]) + 1)
        following = np.append(members[1:], 0)
        following[np.append(starts[1:] - 1, len(members) - 1)] = members[starts]
        return members, following


def _frames(found: ObjectFile, section: int, relocations: Relocations) -> tuple[Relocations, Frames]:
    """The relocations of one unwinding section in order, and what they say."""
    own = np.flatnonzero(relocations.section == section)
    own = own[np.argsort(relocations.offset[own], kind="stable")]
    part = Relocations(*(getattr(relocations, name)[own] for name in ("section", "offset", "symbol", "addend")))
    return part, read_frames(found.contents(section), part, found.path)


def handlers_of(found: ObjectFile) -> tuple[Int64s, Int64s]:
    """Pairs of sections of an object: functions, and the tables that their frames name. Only those in this object."""
    wanted = np.zeros(len(found), bool)
    wanted[found.named(EH_FRAME)] = True
    relocations = found.relocations(wanted)
    functions, handlers = [_EMPTY], [_EMPTY]
    for number in np.flatnonzero(wanted).tolist():
        part, frames = _frames(found, number, relocations)
        section = found.symbol_section[part.symbol]
        both = (section[frames.further] > 0) & (section[frames.further_of] > 0)
        functions.append(section[frames.further_of][both])
        handlers.append(section[frames.further][both])
    return np.concatenate(functions), np.concatenate(handlers)
