"""A compact copy of the unwinding tables, with the records of kept code only.

In their old place the kept records would hold on to nearly every page: 11.7 MB for 6.9 MB of records. Nothing but the
program header PT_GNU_EH_FRAME says where the tables are, so they can move: all their pointers count from their own
place and are written anew. The copy is `.eh_frame_hdr`, `.eh_frame` and `.gcc_except_table`, one behind the other;
padding of records is cut short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import Bytes, ElfFile, Int64s
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from opsieve.runtimes.wheel.library.fields import TableError, gather, read_signed, read_uleb, write_signed
from opsieve.runtimes.wheel.library.frame_instructions import read_programs
from opsieve.runtimes.wheel.library.frames import FrameTable
from opsieve.runtimes.wheel.library.handler_copy import HandlerCopy, copy_handlers
from opsieve.runtimes.wheel.library.handlers import read_handlers
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

    sizes: Int64s
    """New size of each kept FDE."""

    handlers: HandlerCopy

    @property
    def in_place(self) -> Ranges:
        """Addresses of the old tables that must stay."""
        return self.handlers.in_place

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
        self.handlers.write(data, address, layout.handlers)
        self._write_common(data, address, layout)
        self._write_frames(data, address, layout)
        self._write_header(data, address, layout)
        return data

    def _layout(self) -> _Layout:
        used = distinct(self.frames.cie[self.kept])
        cie_sizes = np.array([self.frames.cies[index].size for index in used.tolist()], np.int64)
        first = -(-self.header_size // 8) * 8
        cies = first + np.cumsum(cie_sizes) - cie_sizes
        fdes = first + int(cie_sizes.sum()) + np.cumsum(self.sizes) - self.sizes
        terminator = first + int(cie_sizes.sum()) + int(self.sizes.sum())
        handlers, end = self.handlers.place(-(-(terminator + 4) // 4) * 4)
        return _Layout(first, used, cies, fdes, handlers, end)

    def _write_common(self, data: Bytes, address: int, layout: _Layout) -> None:
        for index, place in zip(layout.used.tolist(), layout.cies.tolist(), strict=True):
            cie = self.frames.cies[index]
            data[place : place + cie.size] = self.frames.contents[cie.position : cie.position + cie.size]
            if cie.personality < 0:
                continue
            old = np.array([cie.personality])
            distance = read_signed(self.frames.contents, old, cie.personality_size)
            new = old - cie.position + place
            target = self.frames.section.address + old + distance
            if distance[0]:
                write_signed(data, new, target - (address + new), cie.personality_size)

    def _write_frames(self, data: Bytes, address: int, layout: _Layout) -> None:
        frames, kept, places = self.frames, self.kept, layout.fdes
        if not len(kept):
            return
        packed, _ = gather(frames.contents, frames.positions[kept], self.sizes)
        data[places[0] : places[0] + len(packed)] = packed
        write_signed(data, places, self.sizes - 4, 4)
        common = layout.cies[np.searchsorted(layout.used, frames.cie[kept])]
        write_signed(data, places + 4, places + 4 - common, 4)
        _write_pointers(data, address, places + 8, frames.starts[kept], frames.pointer_sizes[kept])
        has = np.flatnonzero(frames.lsda_positions[kept] >= 0)
        fields = frames.lsda_positions[kept][has] - frames.positions[kept][has] + places[has]
        targets = self.handlers.new_addresses(frames.lsdas[kept][has], address, layout.handlers)
        _write_pointers(data, address, fields, targets, frames.lsda_sizes[kept][has])

    def _write_header(self, data: Bytes, address: int, layout: _Layout) -> None:
        data[:4] = _HEADER
        write_signed(data, np.array([4]), np.array([layout.frames - 4]), 4)
        write_signed(data, np.array([8]), np.array([len(self.kept)]), 4)
        table = np.stack([self.frames.starts[self.kept] - address, layout.fdes], axis=1).ravel()
        write_signed(data, _HEADER_SIZE + 4 * np.arange(len(table)), table, 4)


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


def _write_pointers(data: Bytes, address: int, places: Int64s, targets: Int64s, sizes: Int64s) -> None:
    for size in (4, 8):
        chosen = sizes == size
        write_signed(data, places[chosen], targets[chosen] - (address + places[chosen]), size)


def copy_unwind_tables(elf: ElfFile, frames: FrameTable, kept: Flags) -> UnwindCopy:
    """Plan the copy of the FDEs for which `kept` is set, with the CIEs and handlers they use.

    Raises InvalidLibrary for malformed tables, UnsupportedLibrary for a record that is tied to its place.
    """
    chosen = np.flatnonzero(kept)
    chosen = chosen[np.argsort(frames.starts[chosen], kind="stable")]
    try:
        sizes = _sizes(elf, frames, chosen)
        section = elf.find_section(HANDLER_SECTION)
        contents = np.empty(0, np.uint8) if section is None else elf.contents(section)
        address = 0 if section is None else section.address
        starts = distinct(frames.lsdas[frames.lsdas >= 0]) - address
        handlers = read_handlers(contents, starts)
    except TableError as error:
        raise InvalidLibrary(f"malformed unwinding tables: {error}", where=elf.path) from error
    used = distinct(frames.lsdas[chosen][frames.lsdas[chosen] >= 0]) - address
    needed = np.searchsorted(starts, used)
    return UnwindCopy(frames, chosen, sizes, copy_handlers(handlers, contents, address, needed))


def _sizes(elf: ElfFile, frames: FrameTable, chosen: Int64s) -> Int64s:
    """The bytes of each FDE up to its last instruction, as a multiple of 4."""
    positions = frames.positions[chosen]
    starts, ends = positions + 8 + 2 * frames.pointer_sizes[chosen], positions + frames.sizes[chosen]
    augmented = np.array([cie.augmented for cie in frames.cies], bool)[frames.cie[chosen]]
    length, behind = read_uleb(frames.contents, starts[augmented])
    starts[augmented] = behind + length
    programs = read_programs(frames.contents, starts, ends)
    if np.any(starts > ends) or np.any(programs.ends > ends):
        raise TableError("a record is too short for what it holds")
    if np.any(programs.fixed):
        raise UnsupportedLibrary(
            "an unwinding record uses DW_CFA_set_loc and cannot be moved",
            where=f"{elf.path}, .eh_frame, offset {int(positions[programs.fixed][0]):#x}",
            remedy="keep this library as it is",
        )
    return -(-(programs.ends - positions) // 4) * 4
