"""Copying handler entries (LSDAs) to a new place, equal ones once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Bytes, Int64s
from opsieve.runtimes.wheel.library.fields import gather, read_signed, write_signed
from opsieve.runtimes.wheel.library.handlers import TYPE_POINTER_SIZE, Handlers
from opsieve.runtimes.wheel.library.ranges import Ranges


@dataclass(frozen=True, slots=True, eq=False)
class HandlerCopy:
    """The entries that are needed, and which of them are copied."""

    handlers: Handlers
    contents: Bytes
    """The old section."""

    address: int
    """Of the old section."""

    copied: Int64s
    """Indices of the entries that get a copy."""

    copy_of: Int64s
    """For every entry the number of its copy, -1 for one that is not needed or stays."""

    in_place: Ranges
    """Addresses of needed entries that have an unknown form and stay where they are."""

    def place(self, start: int) -> tuple[Int64s, int]:
        """Give the copies their places from offset `start`, a multiple of 4: the places, and the offset behind them.

        Those without types lie close together, the others are aligned as they were.
        """
        starts, ends = self.handlers.starts[self.copied], self.handlers.ends[self.copied]
        typed = self.handlers.type_tables[self.copied] >= 0
        phase = np.where(typed, starts % 4, 0)
        rooms = np.where(typed, -(-(phase + ends - starts) // 4) * 4, ends - starts)
        order = np.argsort(typed, kind="stable")
        places = np.empty(len(starts), np.int64)
        places[order] = np.cumsum(rooms[order]) - rooms[order]
        padding = -int(rooms[~typed].sum()) % 4
        places += start + np.where(typed, padding + phase, 0)
        return places, start + padding + int(rooms.sum())

    def write(self, data: Bytes, address: int, places: Int64s) -> None:
        """Write the copies into `data`, which is to stand at `address`."""
        starts, ends = self.handlers.starts[self.copied], self.handlers.ends[self.copied]
        packed, offsets = gather(self.contents, starts, ends - starts)
        data[np.repeat(places - offsets, ends - starts) + np.arange(len(packed))] = packed
        counts = self.handlers.type_counts[self.copied]
        owner = np.repeat(np.arange(len(counts)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        old = self.handlers.type_tables[self.copied][owner] - TYPE_POINTER_SIZE * (number + 1)
        distance = read_signed(self.contents, old, TYPE_POINTER_SIZE)
        # A distance of 0 means "any type", whatever it counts from.
        old, owner, distance = old[distance != 0], owner[distance != 0], distance[distance != 0]
        new = old - starts[owner] + places[owner]
        write_signed(data, new, self.address + old + distance - (address + new), TYPE_POINTER_SIZE)

    def new_addresses(self, lsdas: Int64s, address: int, places: Int64s) -> Int64s:
        """Where the entries with these old addresses are to be found, when the copies stand at `address + places`."""
        entry = np.searchsorted(self.handlers.starts, lsdas - self.address)
        copy = self.copy_of[entry]
        if not len(places):
            return lsdas
        return np.where(copy >= 0, address + places[copy], lsdas)


def copy_handlers(handlers: Handlers, contents: Bytes, address: int, needed: Int64s) -> HandlerCopy:
    """Plan the copy of the entries `needed` (indices). Those that catch no type hold no address: equal ones are one."""
    movable = needed[handlers.movable[needed]]
    stay = needed[~handlers.movable[needed]]
    copied: list[int] = []
    copy_of = np.full(len(handlers.starts), -1, np.int64)
    known: dict[bytes, int] = {}
    data = contents.tobytes()
    for index, start, end, types in zip(
        movable.tolist(),
        handlers.starts[movable].tolist(),
        handlers.ends[movable].tolist(),
        handlers.type_tables[movable].tolist(),
        strict=True,
    ):
        number = len(copied) if types >= 0 else known.setdefault(data[start:end], len(copied))
        if number == len(copied):
            copied.append(index)
        copy_of[index] = number
    in_place = Ranges.of(address + handlers.starts[stay], address + handlers.ends[stay])
    return HandlerCopy(handlers, contents, address, np.array(copied, np.int64), copy_of, in_place)
