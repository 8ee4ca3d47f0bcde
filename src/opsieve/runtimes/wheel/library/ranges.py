"""Sets of addresses as sorted ranges: 150,000 kept functions are two arrays, and a union is one sort."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opsieve.code.arrays import distinct
from opsieve.code.elf import Int64s

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """A set of addresses. `starts[i] <= address < ends[i]` for some i; sorted, disjoint, never empty, never touching.

    Build it with `Ranges.of`, which brings any ranges into this form.
    """

    starts: Int64s
    ends: Int64s

    @classmethod
    def of(cls, starts: Int64s, ends: Int64s) -> Ranges:
        """The union of the ranges `[starts[i], ends[i])`, in any order, overlapping or empty."""
        some = starts < ends
        order = np.argsort(starts[some], kind="stable")
        starts = np.asarray(starts[some][order], np.int64)
        reach = np.maximum.accumulate(np.asarray(ends[some][order], np.int64))
        if not len(starts):
            return cls(starts, reach)
        fresh = starts[1:] > reach[:-1]
        return cls(starts[np.append(True, fresh)], reach[np.append(fresh, True)])

    @classmethod
    def one(cls, start: int, end: int) -> Ranges:
        """The single range `[start, end)`, empty if `end` is not larger."""
        return cls.of(np.array([start], np.int64), np.array([end], np.int64))

    @classmethod
    def empty(cls) -> Ranges:
        """The empty set."""
        return cls.one(0, 0)

    def __len__(self) -> int:
        return len(self.starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self.starts.tolist(), self.ends.tolist(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranges):
            return NotImplemented
        return np.array_equal(self.starts, other.starts) and np.array_equal(self.ends, other.ends)

    __hash__ = None  # type: ignore[assignment]

    @property
    def size(self) -> int:
        """How many addresses the set holds."""
        return int((self.ends - self.starts).sum())

    def union(self, *others: Ranges) -> Ranges:
        """Addresses in this set or in any of the others."""
        sets = (self, *others)
        return Ranges.of(np.concatenate([s.starts for s in sets]), np.concatenate([s.ends for s in sets]))

    def intersection(self, other: Ranges) -> Ranges:
        """Addresses in both sets."""
        return self._where(other, wanted=True)

    def difference(self, other: Ranges) -> Ranges:
        """Addresses in this set that are not in the other."""
        return self._where(other, wanted=False)

    def _where(self, other: Ranges, *, wanted: bool) -> Ranges:
        bounds = distinct(np.concatenate([self.starts, self.ends, other.starts, other.ends]))
        lows, highs = bounds[:-1], bounds[1:]
        chosen = self.contains(lows) & (other.contains(lows) == wanted)
        return Ranges.of(lows[chosen], highs[chosen])

    def contains(self, addresses: Int64s) -> Flags:
        """For each address whether the set holds it."""
        index = np.searchsorted(self.starts, addresses, "right") - 1
        found: Flags = index >= 0
        found[found] = addresses[found] < self.ends[index[found]]
        return found

    def overlaps(self, starts: Int64s, ends: Int64s) -> Flags:
        """For each range `[starts[i], ends[i])` whether it has an address in common with the set."""
        first_behind = np.searchsorted(self.ends, starts, "right")
        found: Flags = first_behind < len(self)
        found[found] = self.starts[first_behind[found]] < ends[found]
        return found & (starts < ends)

    def rounded(self, unit: int) -> Ranges:
        """Every range widened to multiples of `unit`, such as whole pages."""
        return Ranges.of(self.starts // unit * unit, -(-self.ends // unit) * unit)

    def bridged(self, gap: int) -> Ranges:
        """Holes of up to `gap` addresses between two ranges filled."""
        if not len(self):
            return self
        wide = self.starts[1:] - self.ends[:-1] > gap
        return Ranges(self.starts[np.append(True, wide)], self.ends[np.append(wide, True)])
