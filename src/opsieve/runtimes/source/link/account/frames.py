"""The unwinding tables of an object: which description of a frame belongs to which function.

Layout: Linux Standard Base, .eh_frame. In an object every address in it is a relocation.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import Bytes, Int64s
from opsieve.errors import InvalidFile
from opsieve.runtimes.source.link.account.object_file import Bools, Relocations

EH_FRAME = rb"\.eh_frame"
_EXTENDED = 0xFFFFFFFF
INDEX_ENTRY = 8
"""Bytes that each frame has in `.eh_frame_hdr`, the index that the linker makes."""


@dataclass(frozen=True)
class Frames:
    """What the relocations of one `.eh_frame` section say; parallel arrays, positions into those relocations."""

    functions: Int64s
    """The relocation that names the function of each frame."""

    sizes: Int64s
    """Bytes of each frame."""

    further: Int64s
    """Relocations of frames to what else they need: the table of a function's handlers."""

    further_of: Int64s
    """For each of these, the relocation that names the function."""

    common: Int64s
    """Relocations that many frames share: personality routines."""


def read_frames(content: Bytes, relocations: Relocations, path: Path) -> Frames:
    """Take apart an `.eh_frame`. `relocations` are those of this section alone, in the order of their offsets."""
    starts, is_common = _records(content, path)
    ends = np.append(starts[1:], len(content))
    record = np.searchsorted(starts, relocations.offset, "right") - 1
    if not len(starts) or (len(record) and record.min() < 0):
        none = np.empty(0, np.int64)
        return Frames(none, none, none, none, none)
    positions = np.arange(len(record))
    first = np.append(True, record[1:] != record[:-1]) if len(record) else np.empty(0, bool)
    common = is_common[record]
    leader = np.maximum.accumulate(np.where(first, positions, 0)) if len(record) else positions
    functions = positions[first & ~common]
    further = positions[~first & ~common]
    sizes = ends[record[functions]] - starts[record[functions]]
    return Frames(functions, sizes, further, leader[further], positions[first & common])


def _records(content: Bytes, path: Path) -> tuple[Int64s, Bools]:
    """Where each record starts, and whether it is common to many frames (a CIE)."""
    words = content[: len(content) // 4 * 4].view("<u4").tolist()
    starts, common, position = [], [], 0
    while position + 1 < len(words):
        length = words[position]
        if length == _EXTENDED or length % 4:
            raise InvalidFile("unwinding tables of 64-bit records are not read", where=path)
        if length:
            starts.append(4 * position)
            common.append(words[position + 1] == 0)
        position += 1 + length // 4
    return np.array(starts, np.int64), np.array(common, bool)
