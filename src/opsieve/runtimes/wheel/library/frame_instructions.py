"""Reading the instructions of unwinding records: where they end, and whether one of them ties a record to its place."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Bytes, Int64s
from opsieve.runtimes.wheel.library.fields import TableError, read_uleb
from opsieve.runtimes.wheel.library.ranges import Flags

_NOP, _SET_LOCATION = 0x00, 0x01
_LONGEST_SEQUENCE = 100_000
"""Instructions of one record; those of libtorch_cpu.so have at most a few hundred."""

_ULEBS = np.full(256, -1, np.int8)
"""How many LEB128 numbers follow each opcode, -1 for one that nobody defined: DWARF 5, section 7.24, and the GNU
extensions 0x2d to 0x2f. Their sign does not matter for their length."""
_ULEBS[[0x00, _SET_LOCATION, 0x02, 0x03, 0x04]] = 0
_ULEBS[[0x0A, 0x0B, 0x0F, 0x2D]] = 0
_ULEBS[[0x06, 0x07, 0x08, 0x0D, 0x0E, 0x10, 0x13, 0x16, 0x2E]] = 1
_ULEBS[[0x05, 0x09, 0x0C, 0x11, 0x12, 0x14, 0x15, 0x2F]] = 2
_ULEBS[0x40:0x80] = 0  # advance_loc
_ULEBS[0x80:0xC0] = 1  # offset
_ULEBS[0xC0:0x100] = 0  # restore

_BYTES = np.zeros(256, np.int64)
_BYTES[[0x02, 0x03, 0x04]] = 1, 2, 4
"""Operand bytes of DW_CFA_advance_loc1, 2 and 4."""

_BLOCK = np.zeros(256, bool)
_BLOCK[[0x0F, 0x10, 0x16]] = True
"""Whether an expression with its length before it follows."""


@dataclass(frozen=True, slots=True, eq=False)
class Programs:
    """What the instruction sequences of some records amount to."""

    ends: Int64s
    """The position behind the last instruction of each that does anything; DW_CFA_nop is padding."""

    fixed: Flags
    """Whether each holds an address (DW_CFA_set_loc). No compiler emits that for position-independent code, but
    moving such a record would unwind wrongly without a word."""


def read_programs(contents: Bytes, starts: Int64s, ends: Int64s) -> Programs:
    """Read the sequences `[starts[i], ends[i])`. Raises TableError for an opcode that nobody defined."""
    used, fixed = starts.copy(), np.zeros(len(starts), bool)
    active = np.flatnonzero(ends > starts)
    place = starts[active]
    for _ in range(_LONGEST_SEQUENCE):
        if not len(active):
            return Programs(used, fixed)
        opcode = contents[place]
        stop = opcode == _SET_LOCATION
        fixed[active[stop]] = True
        place = _behind(contents, place, opcode)
        real = opcode != _NOP
        used[active[real]] = place[real]
        more = (place < ends[active]) & ~stop
        active, place = active[more], place[more]
    raise TableError(f"an unwinding record has more than {_LONGEST_SEQUENCE} instructions")


def _behind(contents: Bytes, place: Int64s, opcode: Bytes) -> Int64s:
    """The positions behind the instructions at `place`."""
    numbers = _ULEBS[opcode]
    if np.any(numbers < 0):
        raise TableError(f"unknown unwinding instruction {int(opcode[numbers < 0][0]):#x}")
    behind = place + 1 + _BYTES[opcode]
    for least in (1, 2):
        more = np.flatnonzero(numbers >= least)
        behind[more] = read_uleb(contents, behind[more])[1]
    block = np.flatnonzero(_BLOCK[opcode])
    length, after = read_uleb(contents, behind[block])
    behind[block] = after + length
    return behind
