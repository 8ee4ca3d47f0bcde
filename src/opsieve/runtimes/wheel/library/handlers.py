"""Reading the language-specific data of unwinding records (`.gcc_except_table`): how to move it without change.

One entry (LSDA) lists the call sites of a function with their landing pads, the actions to try there, and the
types that the actions catch. All of it counts from the start of the function, except the type pointers: each counts
from its own place. They lie before an address that the head of the entry gives, but nothing says how many there are:
that follows from the largest type index that any action uses. Format: LSB 5.0 refers to the Itanium C++ ABI,
"Exception Handling Tables"; the reader it must agree with is `__gxx_personality_v0` of libstdc++.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Bytes, Int64s
from opsieve.runtimes.wheel.library.fields import TableError, gather, read_sleb, read_uleb
from opsieve.runtimes.wheel.library.frames import OMITTED

_ULEB128 = 0x01
_TYPE_POINTERS = (0x1B, 0x9B)
"""Four bytes that count from their own place; 0x9B points at a slot that holds the address of the type."""

TYPE_POINTER_SIZE = 4
_LONGEST_CHAIN = 10_000
"""Actions of one call site, or types of one specification; a longer chain can only be a cycle."""


@dataclass(frozen=True, slots=True, eq=False)
class Handlers:
    """All entries in order of their position, as parallel arrays. Positions are offsets into the section."""

    starts: Int64s
    ends: Int64s
    """An entry reaches to the next one: every entry has a record that points at it, so no start is missing."""

    movable: np.ndarray
    """Whether the entry has a form that we can move; others stay in their place."""

    type_tables: Int64s
    """Position behind the last type pointer, -1 when the entry catches no type."""

    type_counts: Int64s
    """How many type pointers the entry has."""


def read_handlers(contents: Bytes, starts: Int64s) -> Handlers:
    """Read the entries at `starts` (sorted, distinct offsets). Raises TableError where one is broken."""
    ends = np.append(starts[1:], len(contents))
    if len(starts) and (starts[0] < 0 or starts[-1] + 4 > len(contents)):
        raise TableError(f"the table of handlers at offset {int(starts[-1]):#x} lies outside the section")
    type_encoding = contents[starts + 1]
    typed = type_encoding != OMITTED
    behind = starts + 2
    table = np.full(len(starts), -1, np.int64)
    distance, behind[typed] = read_uleb(contents, behind[typed])
    table[typed] = behind[typed] + distance
    movable = (contents[starts] == OMITTED) & (~typed | np.isin(type_encoding, _TYPE_POINTERS))
    movable &= ~typed | (contents[behind] == _ULEB128)
    counts = np.zeros(len(starts), np.int64)
    chosen = np.flatnonzero(movable & typed)
    counts[chosen] = _type_counts(contents, behind[chosen] + 1, table[chosen])
    if np.any(counts > len(contents)):
        raise TableError(f"an action names type {int(counts.max())}")
    outside = (table > ends) | ((table >= 0) & (table - counts * TYPE_POINTER_SIZE < starts))
    if np.any(outside):
        raise TableError(f"the type table of the handlers at offset {int(starts[outside][0]):#x} has no place")
    return Handlers(starts, ends, movable, table, counts)


def _type_counts(contents: Bytes, lengths: Int64s, tables: Int64s) -> Int64s:
    """The largest type index of each entry. `lengths`: position of the length of its call-site table."""
    size, sites = read_uleb(contents, lengths)
    entry, action = _actions(contents, sites, size)
    counts = np.zeros(len(lengths), np.int64)
    place = sites[entry] + size[entry] + action - 1
    for _ in range(_LONGEST_CHAIN):
        if not len(entry):
            return counts
        index, next_field = read_sleb(contents, place)
        np.maximum.at(counts, entry, index)
        _count_specifications(contents, tables, counts, entry[index < 0], index[index < 0])
        step, _ = read_sleb(contents, next_field)
        more = step != 0
        entry, place = entry[more], (next_field + step)[more]
    raise TableError("the actions of a call site form a cycle")


def _actions(contents: Bytes, sites: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct pairs (entry, number of its first action) of all call sites that have one.

    A call-site table is nothing but LEB128 numbers, four to a site; the fourth is the action, 0 for "clean up only".
    """
    data, offsets = gather(contents, sites, sizes)
    last_bytes = np.flatnonzero(data < 0x80)
    first_bytes = np.concatenate([[0], last_bytes[:-1] + 1])[: len(last_bytes)]
    per_table = np.diff(np.append(np.searchsorted(last_bytes, offsets), len(last_bytes)))
    if np.any(per_table % 4) or (len(data) and data[-1] >= 0x80):
        raise TableError("a table of call sites ends within a site")
    actions, _ = read_uleb(data, first_bytes[3::4])
    owner = np.repeat(np.arange(len(sites)), per_table // 4)
    pairs = np.unique(np.stack([owner, actions])[:, actions > 0], axis=1)
    return pairs[0], pairs[1]


def _count_specifications(contents: Bytes, tables: Int64s, counts: Int64s, entry: Int64s, index: Int64s) -> None:
    """A negative index names a list of types behind the type table: `throw(A, B)` of C++98, ended by 0."""
    place = tables[entry] - index - 1
    for _ in range(_LONGEST_CHAIN):
        if not len(entry):
            return
        kind, place = read_uleb(contents, place)
        np.maximum.at(counts, entry, kind)
        entry, place = entry[kind > 0], place[kind > 0]
    raise TableError("an exception specification does not end")
