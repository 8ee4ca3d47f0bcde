"""Pages of the file that stand for several pages of memory.

Where kept code ends, its last page is mostly empty, and so is the first page of the next part: 3,200 such pages of
libtorch_cpu.so are 60 % empty. The loader can map one page of the file twice, so the end of one part and the start
of another share a page whenever their kept bytes have different places in it. The parts only change their order in
the file; no further mapping is needed.

In memory such a page then holds, between its own code, code that belongs elsewhere and must not run there. All places
where removed code can be entered therefore still have to be traps: the start of every removed function and whatever
any instruction or pointer refers to. Pages of constants are not shared: reading more than one needs does no harm there
as long as it finds the old bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opsieve.code.arrays import distinct
from opsieve.code.elf import Int64s
from opsieve.runtimes.wheel.library.ranges import Ranges
from opsieve.runtimes.wheel.library.segments import PAGE, Segment, page_down

_BITS = PAGE // 8
Bits = npt.NDArray[np.uint8]


@dataclass(slots=True)
class _FilePage:
    """What one page of the file stands for: the end of at most one part, whole parts of one page, and the start of
    at most one part, in this order."""

    tail: int | None = None
    whole: list[int] = field(default_factory=list)
    head: int | None = None

    def parts(self) -> list[int]:
        """The parts in the order in which they follow each other in the file."""
        ends = ([] if end is None else [end] for end in (self.tail, self.head))
        first, last = ends
        return [*first, *self.whole, *last]


@dataclass(frozen=True, slots=True)
class Sharing:
    """Which parts share pages."""

    chains: tuple[tuple[Segment, ...], ...]
    """The last page of each part of a chain and the first page of the next are one page of the file. Parts that share
    nothing are chains of one."""

    @property
    def pages(self) -> Ranges:
        """The addresses of all pages of memory that share."""
        pairs = [pair for chain in self.chains for pair in pairwise(chain)]
        starts = np.array([page for a, b in pairs for page in (a.end - PAGE, b.address)], np.int64)
        return Ranges.of(starts, starts + PAGE)

    @property
    def saved(self) -> int:
        """Bytes that the file is shorter."""
        return PAGE * sum(len(chain) - 1 for chain in self.chains)


def share_nothing(parts: Sequence[Segment]) -> Sharing:
    """Every part has its own pages."""
    return Sharing(tuple((part,) for part in parts))


def share_pages(parts: Sequence[Segment], analysed: Ranges, kept: Ranges, entries: Int64s) -> Sharing:
    """Find pages of code that can share.

    `kept` are all addresses whose bytes must stay, `entries` those at which removed code may be entered. The first part
    stays first, because the file begins with it.
    """
    entries = distinct(entries)
    pages = _Pages.of(parts, analysed, kept, entries)
    files = _pack(pages)
    following = {a: b for page in files for a, b in pairwise(page.parts())}
    starts = sorted(set(range(len(parts))) - set(following.values()))
    found = []
    for start in starts:
        chain = [start]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        found.append(tuple(parts[index] for index in chain))
    return Sharing(tuple(found))


@dataclass(frozen=True, slots=True, eq=False)
class _Pages:
    """The pages of memory that may share, as parallel arrays; one row of bits per page, one bit per byte."""

    part: Int64s
    is_tail: npt.NDArray[np.bool_]
    is_head: npt.NDArray[np.bool_]
    """A part of a single page is both."""

    needed: Bits
    traps: Bits

    @classmethod
    def of(cls, parts: Sequence[Segment], analysed: Ranges, kept: Ranges, entries: Int64s) -> _Pages:
        """Find the first and the last page of each part, as far as they are full pages of code."""
        starts = np.array([part.address for part in parts], np.int64)
        ends = np.array([part.end for part in parts], np.int64)
        single = ends - starts <= PAGE
        number = np.arange(len(parts))
        part = np.concatenate([number[single], number[~single], number[~single]])
        address = np.concatenate([starts[single], ends[~single] - PAGE, starts[~single]])
        kind = np.repeat([0, 1, 2], [int(single.sum()), int((~single).sum()), int((~single).sum())])
        outside = Ranges.of(address, address + PAGE).difference(analysed)
        usable = (address % PAGE == 0) & ~outside.overlaps(address, address + PAGE)
        usable &= (ends - starts)[part] % PAGE == 0
        # The first part holds the file header and so has its place.
        usable &= (part > 0) | (kind == 1)
        part, address, kind = part[usable], address[usable], kind[usable]
        row = {page: index for index, page in enumerate(address.tolist())}
        needed = np.zeros((len(address), PAGE), bool)
        for start, end in kept.intersection(Ranges.of(address, address + PAGE)):
            for page in range(page_down(start), end, PAGE):
                needed[row[page], max(start - page, 0) : end - page] = True
        traps = np.zeros((len(address), PAGE), bool)
        for page, index in row.items():
            low, high = np.searchsorted(entries, [page, page + PAGE])
            traps[index, entries[low:high] - page] = True
        return cls(part, kind != 2, kind != 1, np.packbits(needed, axis=1), np.packbits(traps, axis=1))


def _pack(pages: _Pages) -> list[_FilePage]:
    """First fit, the fullest page first. A chain must not bite its own tail: that is what `group` prevents."""
    count = len(pages.part)
    needed, traps = np.zeros((count, _BITS), np.uint8), np.zeros((count, _BITS), np.uint8)
    has_tail, has_head = np.zeros(count, bool), np.zeros(count, bool)
    files: list[_FilePage] = []
    group = {int(part): int(part) for part in pages.part}
    fullness = np.bitwise_count(pages.needed).sum(1, dtype=np.int64)
    for row in np.argsort(-fullness, kind="stable").tolist():
        tail, head = bool(pages.is_tail[row]), bool(pages.is_head[row])
        own, trap, part, used = pages.needed[row], pages.traps[row], int(pages.part[row]), len(files)
        fits = ~np.any((own & (needed[:used] | traps[:used])) | (trap & needed[:used]), axis=1)
        if not (tail and head):
            fits &= ~has_tail[:used] if tail else ~has_head[:used]
        place = next((p for p in np.flatnonzero(fits).tolist() if _joins(files[p], part, group)), used)
        if place == used:
            files.append(_FilePage())
        file = files[place]
        needed[place] |= own
        traps[place] |= trap
        if tail and head:
            file.whole.append(part)
        elif tail:
            file.tail, has_tail[place] = part, True
        else:
            file.head, has_head[place] = part, True
        for other in file.parts():
            group[_root(group, other)] = _root(group, part)
    return files


def _joins(file: _FilePage, part: int, group: dict[int, int]) -> bool:
    """Whether the part is not yet in the chain that goes through this page."""
    return all(_root(group, other) != _root(group, part) for other in file.parts())


def _root(group: dict[int, int], part: int) -> int:
    while group[part] != part:
        group[part] = group[group[part]]
        part = group[part]
    return part
