"""A compact copy of the unwinding tables, with the records of kept code only.

In their old place the kept records would hold on to nearly every page: 11.7 MB for 6.9 MB of records. Nothing but the
program header PT_GNU_EH_FRAME says where the tables are, so they can move: all their pointers count from their own
place and are written anew. The copy is `.eh_frame_hdr`, `.eh_frame` and `.gcc_except_table`, one behind the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Bytes, ElfFile, Int64s
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from opsieve.runtimes.wheel.library.fields import TableError, gather, read_signed, read_uleb, write_signed
from opsieve.runtimes.wheel.library.frame_instructions import sets_location
from opsieve.runtimes.wheel.library.frames import FrameTable
from opsieve.runtimes.wheel.library.handlers import TYPE_POINTER_SIZE, Handlers, read_handlers
from opsieve.runtimes.wheel.library.ranges import Flags, Ranges

HANDLER_SECTION = ".gcc_except_table"
_HEADER = np.array([1, 0x1B, 0x03, 0x3B], np.uint8)
"""Version 1; pointer to .eh_frame relative to its place; count as u4; table of i4 relative to the header."""
_HEADER_SIZE = 12


@dataclass(frozen=True, slots=True, eq=False)
class UnwindCopy:
    """The new tables, ready to be written once their address is known."""

    frames: FrameTable
    kept: Int64s
    """Indices of the kept FDEs, in order of the code they cover."""

    handlers: Handlers
    moved: Int64s
    """Indices of the handler entries that move along."""

    handlers_contents: Bytes
    handlers_address: int

    @property
    def in_place(self) -> Ranges:
        """Addresses of handler entries that have an unknown form and must stay where they are."""
        wanted = np.zeros(len(self.handlers.starts), bool)
        wanted[self._handler_of(self.kept[self.frames.lsdas[self.kept] >= 0])] = True
        stay = wanted & ~self.handlers.movable
        return Ranges.of(
            self.handlers_address + self.handlers.starts[stay], self.handlers_address + self.handlers.ends[stay]
        )

    @property
    def header_size(self) -> int:
        """Bytes of the sorted table, which comes first; PT_GNU_EH_FRAME covers just this."""
        return _HEADER_SIZE + 8 * len(self.kept)

    @property
    def size(self) -> int:
        """Bytes of all three tables."""
        return self._layout().end

    def render(self, address: int) -> Bytes:
        """The tables as they are to stand at `address`, a multiple of 8."""
        layout = self._layout()
        data = np.zeros(layout.end, np.uint8)
        self._write_handlers(data, address, layout)
        self._write_common(data, address, layout)
        self._write_frames(data, address, layout)
        self._write_header(data, address, layout)
        return data

    def _layout(self) -> _Layout:
        used = np.unique(self.frames.cie[self.kept])
        cie_sizes = np.array([self.frames.cies[index].size for index in used.tolist()], np.int64)
        first = -(-self.header_size // 8) * 8
        cies = first + np.cumsum(cie_sizes) - cie_sizes
        sizes = self.frames.sizes[self.kept]
        fdes = first + int(cie_sizes.sum()) + np.cumsum(sizes) - sizes
        terminator = first + int(cie_sizes.sum()) + int(sizes.sum())
        handlers, end = self._place_handlers(-(-(terminator + 4) // 4) * 4)
        return _Layout(first, used, cies, fdes, handlers, end)

    def _place_handlers(self, start: int) -> tuple[Int64s, int]:
        """Positions of the moved entries: those without types close together, the others aligned as they were."""
        starts, ends = self.handlers.starts[self.moved], self.handlers.ends[self.moved]
        typed = self.handlers.type_tables[self.moved] >= 0
        # The end of an entry is where the next begins, so padding between them is copied too.
        sizes = ends - starts
        phase = np.where(typed, starts % 4, 0)
        rooms = np.where(typed, -(-(phase + sizes) // 4) * 4, sizes)
        order = np.argsort(typed, kind="stable")
        places = np.empty(len(starts), np.int64)
        places[order] = np.cumsum(rooms[order]) - rooms[order]
        untyped = int(rooms[~typed].sum())
        places[typed] += start + (-untyped) % 4 + phase[typed]
        places[~typed] += start
        return places, start + untyped + (-untyped) % 4 + int(rooms[typed].sum())

    def _write_handlers(self, data: Bytes, address: int, layout: _Layout) -> None:
        starts, ends = self.handlers.starts[self.moved], self.handlers.ends[self.moved]
        packed, offsets = gather(self.handlers_contents, starts, ends - starts)
        data[np.repeat(layout.handlers - offsets, ends - starts) + np.arange(len(packed))] = packed
        counts = self.handlers.type_counts[self.moved]
        owner = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        old = self.handlers.type_tables[self.moved][owner] - TYPE_POINTER_SIZE * (number + 1)
        distance = read_signed(self.handlers_contents, old, TYPE_POINTER_SIZE)
        old, owner, distance = old[distance != 0], owner[distance != 0], distance[distance != 0]
        new = old - starts[owner] + layout.handlers[owner]
        target = self.handlers_address + old + distance
        write_signed(data, new, target - (address + new), TYPE_POINTER_SIZE)

    def _write_common(self, data: Bytes, address: int, layout: _Layout) -> None:
        old_address = self.frames.section.address
        for index, place in zip(layout.used.tolist(), layout.cies.tolist(), strict=True):
            cie = self.frames.cies[index]
            data[place : place + cie.size] = self.frames.contents[cie.position : cie.position + cie.size]
            if cie.personality < 0:
                continue
            old = np.array([cie.personality])
            distance = read_signed(self.frames.contents, old, cie.personality_size)
            new = old - cie.position + place
            target = old_address + old + distance
            if distance[0]:
                write_signed(data, new, target - (address + new), cie.personality_size)

    def _write_frames(self, data: Bytes, address: int, layout: _Layout) -> None:
        frames, kept = self.frames, self.kept
        positions, sizes = frames.positions[kept], frames.sizes[kept]
        packed, _ = gather(frames.contents, positions, sizes)
        if len(packed):
            data[layout.fdes[0] : layout.fdes[0] + len(packed)] = packed
        common = layout.cies[np.searchsorted(layout.used, frames.cie[kept])]
        write_signed(data, layout.fdes + 4, layout.fdes + 4 - common, 4)
        pointer = np.array([cie.pointer_size for cie in frames.cies], np.int64)[frames.cie[kept]]
        self._write_pointers(data, address, layout.fdes + 8, frames.starts[kept], pointer)
        has = np.flatnonzero(frames.lsda_positions[kept] >= 0)
        sizes = np.array([cie.lsda_size for cie in frames.cies], np.int64)[frames.cie[kept]][has]
        places = frames.lsda_positions[kept][has] - positions[has] + layout.fdes[has]
        self._write_pointers(data, address, places, self._new_lsdas(kept[has], address, layout), sizes)

    def _new_lsdas(self, frames: Int64s, address: int, layout: _Layout) -> Int64s:
        entry = self._handler_of(frames)
        new = self.handlers_address + self.handlers.starts
        new[self.moved] = address + layout.handlers
        return new[entry]

    def _write_header(self, data: Bytes, address: int, layout: _Layout) -> None:
        data[:4] = _HEADER
        write_signed(data, np.array([4]), np.array([layout.frames - 4]), 4)
        write_signed(data, np.array([8]), np.array([len(self.kept)]), 4)
        table = np.stack([self.frames.starts[self.kept] - address, layout.fdes], axis=1).ravel()
        write_signed(data, _HEADER_SIZE + 4 * np.arange(len(table)), table, 4)

    def _handler_of(self, frames: Int64s) -> Int64s:
        return np.searchsorted(self.handlers.starts, self.frames.lsdas[frames] - self.handlers_address)

    @staticmethod
    def _write_pointers(data: Bytes, address: int, places: Int64s, targets: Int64s, sizes: Int64s) -> None:
        for size in (4, 8):
            chosen = sizes == size
            write_signed(data, places[chosen], targets[chosen] - (address + places[chosen]), size)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Offsets from the start of the copy."""

    frames: int
    used: Int64s
    """Indices of the CIEs in use."""

    cies: Int64s
    fdes: Int64s
    handlers: Int64s
    end: int


def copy_unwind_tables(elf: ElfFile, frames: FrameTable, kept: Flags) -> UnwindCopy:
    """Plan the copy of the FDEs for which `kept` is set, with the CIEs and handlers they use.

    Raises InvalidLibrary for malformed tables, UnsupportedLibrary for a record that is tied to its place.
    """
    try:
        _refuse_fixed(elf, frames, kept)
        section = elf.find_section(HANDLER_SECTION)
        contents = np.empty(0, np.uint8) if section is None else elf.contents(section)
        address = 0 if section is None else section.address
        starts = np.unique(frames.lsdas[frames.lsdas >= 0]) - address
        handlers = read_handlers(contents, starts)
    except TableError as error:
        raise InvalidLibrary(f"malformed unwinding tables: {error}", where=elf.path) from error
    chosen = np.flatnonzero(kept)
    chosen = chosen[np.argsort(frames.starts[chosen], kind="stable")]
    used = np.unique(frames.lsdas[chosen][frames.lsdas[chosen] >= 0]) - address
    index = np.searchsorted(starts, used)
    return UnwindCopy(frames, chosen, handlers, index[handlers.movable[index]], contents, address)


def _refuse_fixed(elf: ElfFile, frames: FrameTable, kept: Flags) -> None:
    pointer = np.array([cie.pointer_size for cie in frames.cies], np.int64)[frames.cie]
    starts = (frames.positions + 8 + 2 * pointer)[kept]
    fields = np.array([cie.augmented for cie in frames.cies], bool)[frames.cie][kept]
    ends = (frames.positions + frames.sizes)[kept]
    starts[fields] = _behind_augmentation(frames.contents, starts[fields])
    if np.any(starts > ends):
        raise TableError("a record is too short for what it holds")
    if np.any(fixed := sets_location(frames.contents, starts, ends)):
        raise UnsupportedLibrary(
            "an unwinding record uses DW_CFA_set_loc and cannot be moved",
            where=f"{elf.path}, .eh_frame, offset {int(frames.positions[kept][fixed][0]):#x}",
            remedy="keep this library as it is",
        )


def _behind_augmentation(contents: Bytes, places: Int64s) -> Int64s:
    length, behind = read_uleb(contents, places)
    return behind + length
