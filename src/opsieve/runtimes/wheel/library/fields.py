"""Numbers at many places of a byte array at once: the unwinding tables hold 335,120 records of unequal length."""

from __future__ import annotations

import numpy as np

from opsieve.code.elf import Bytes, Int64s

_LEB_BYTES = 9
"""A LEB128 number of more bytes would not fit 63 bits; no table holds one."""


class TableError(Exception):
    """A number that does not end, or lies outside the array; the caller knows which file it is in."""


def read_signed(data: Bytes, positions: Int64s, size: int) -> Int64s:
    """The little-endian signed numbers of `size` bytes (4 or 8) at `positions`."""
    return _columns(data, positions, size).view(f"<i{size}").ravel().astype(np.int64)


def read_unsigned32(data: Bytes, positions: Int64s) -> Int64s:
    """The little-endian unsigned 32-bit numbers at `positions`."""
    return _columns(data, positions, 4).view("<u4").ravel().astype(np.int64)


def write_signed(data: Bytes, positions: Int64s, values: Int64s, size: int) -> None:
    """Store numbers of `size` bytes (4 or 8) at `positions`. Raises OverflowError if one does not fit."""
    if size == 4 and len(values) and not -(1 << 31) <= values.min() <= values.max() < 1 << 31:
        raise OverflowError("a distance of 2 GB or more does not fit 32 bits")
    columns = np.ascontiguousarray(values.astype(f"<i{size}")).view(np.uint8).reshape(-1, size)
    data[positions[:, None] + np.arange(size)] = columns


def read_uleb(data: Bytes, positions: Int64s) -> tuple[Int64s, Int64s]:
    """Unsigned LEB128 numbers (DWARF 5, section 7.6) at `positions`: the values and the positions behind them."""
    values, ends, _ = _read_leb(data, positions)
    return values, ends


def read_sleb(data: Bytes, positions: Int64s) -> tuple[Int64s, Int64s]:
    """Signed LEB128 numbers at `positions`: the values and the positions behind them."""
    values, ends, last = _read_leb(data, positions)
    bits = 7 * (ends - positions)
    return np.where(last & 0x40, values - (np.int64(1) << bits), values), ends


def _read_leb(data: Bytes, positions: Int64s) -> tuple[Int64s, Int64s, Bytes]:
    values = np.zeros(len(positions), np.int64)
    last = np.zeros(len(positions), np.uint8)
    ends = positions.copy()
    active = np.arange(len(positions))
    for index in range(_LEB_BYTES):
        byte = _checked(data, ends[active], 1)
        values[active] |= (byte & 0x7F).astype(np.int64) << (7 * index)
        ends[active] += 1
        last[active] = byte
        active = active[byte >= 0x80]
        if not len(active):
            return values, ends, last
    raise TableError(f"a number at offset {int(positions[active[0]]):#x} does not end")


def gather(data: Bytes, starts: Int64s, sizes: Int64s) -> tuple[Bytes, Int64s]:
    """The pieces `[start, start + size)` one behind the other, and the offset of each in the result."""
    outside = (starts < 0) | (sizes < 0) | (sizes > len(data)) | (starts > len(data) - sizes)
    if np.any(outside):
        raise TableError(f"what stands at offset {int(starts[outside][0]):#x} reaches behind the table")
    offsets = np.cumsum(sizes) - sizes
    total = int(sizes.sum())
    index = np.repeat(starts - offsets, sizes) + np.arange(total)
    return data[index], offsets


def _columns(data: Bytes, positions: Int64s, size: int) -> Bytes:
    _check(data, positions, size)
    return np.ascontiguousarray(data[positions[:, None] + np.arange(size)])


def _checked(data: Bytes, positions: Int64s, size: int) -> Bytes:
    _check(data, positions, size)
    return data[positions]


def _check(data: Bytes, positions: Int64s, size: int) -> None:
    if len(positions) and (positions.min() < 0 or positions.max() > len(data) - size):
        bad = positions[(positions < 0) | (positions > len(data) - size)][0]
        raise TableError(f"offset {int(bad):#x} lies outside the table of {len(data)} bytes")
