"""Reading `.eh_frame`: which unwinding record (FDE) belongs to which code, and what it points at.

Format: Linux Standard Base Core 5.0, chapter 10.6, and DWARF 5, section 6.4. What an FDE holds depends on the
augmentation string and the pointer encodings of its CIE, so records are read group by group, one group per CIE.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import Bytes, ElfFile, Int64s, Section
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from opsieve.runtimes.wheel.library.fields import TableError, read_signed, read_uleb, read_unsigned32

OMITTED = 0xFF
_PC_RELATIVE = 0x10
_INDIRECT = 0x80
_SIZES = {0x00: 8, 0x03: 4, 0x04: 8, 0x0B: 4, 0x0C: 8}
"""Bytes of each pointer format that an address may have: absptr, udata4, udata8, sdata4, sdata8."""


@dataclass(frozen=True, slots=True)
class Cie:
    """What the FDEs of one kind have in common. Positions are offsets into `.eh_frame`, sizes in bytes."""

    position: int
    size: int
    augmented: bool
    """Whether each FDE has augmentation data (`z`)."""

    pointer_size: int
    lsda_size: int
    """Size of the LSDA pointer of each FDE, 0 when there is none."""

    personality: int
    """Position of the pointer to the personality routine, -1 when there is none."""

    personality_size: int


@dataclass(frozen=True, slots=True, eq=False)
class FrameTable:
    """All FDEs in file order, as parallel arrays. Positions are offsets into `.eh_frame`."""

    section: Section
    contents: Bytes
    cies: tuple[Cie, ...]
    positions: Int64s
    sizes: Int64s
    """Bytes of each record, length field included."""

    cie: Int64s
    """Index into `cies`."""

    starts: Int64s
    ends: Int64s
    """The code each one covers, as addresses `[start, end)`."""

    lsda_positions: Int64s
    """Position of the pointer to the language-specific data (the table of handlers), -1 without one."""

    lsdas: Int64s
    """Address of the language-specific data, -1 without any."""

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def pointer_sizes(self) -> Int64s:
        """Bytes of the address at which the code of each starts, and of its length."""
        return np.array([cie.pointer_size for cie in self.cies], np.int64)[self.cie]

    @property
    def lsda_sizes(self) -> Int64s:
        """Bytes of the pointer to the language-specific data of each."""
        return np.array([cie.lsda_size for cie in self.cies], np.int64)[self.cie]


def read_frames(elf: ElfFile) -> FrameTable | None:
    """Read all of `.eh_frame`; None when the library has none.

    Raises InvalidLibrary where a record is malformed, UnsupportedLibrary for an encoding that cannot be moved.
    """
    section = elf.find_section(".eh_frame")
    if section is None or section.size == 0:
        return None
    contents = elf.contents(section)
    try:
        return _read(section, contents, elf.path)
    except TableError as error:
        raise InvalidLibrary(f"malformed unwinding table: {error}", where=f"{elf.path}, .eh_frame") from error


def _read(section: Section, contents: Bytes, path: Path) -> FrameTable:
    positions, sizes = _records(contents)
    identifier = read_unsigned32(contents, positions + 4)
    is_cie = identifier == 0
    cies = tuple(
        _read_cie(contents, position, size, path)
        for position, size in zip(positions[is_cie].tolist(), sizes[is_cie].tolist(), strict=True)
    )
    fdes, fde_sizes = positions[~is_cie], sizes[~is_cie]
    parents = fdes + 4 - identifier[~is_cie]
    cie = np.searchsorted(positions[is_cie], parents)
    cie[cie == len(cies)] = 0
    if len(fdes) and (not cies or not np.array_equal(positions[is_cie][cie], parents)):
        raise TableError("a record names no common record (CIE)")
    columns = np.full((4, len(fdes)), -1, np.int64)
    for index, common in enumerate(cies):
        members = cie == index
        columns[:, members] = _read_fdes(contents, section.address, fdes[members], fde_sizes[members], common)
    return FrameTable(section, contents, cies, fdes, fde_sizes, cie, *columns)


def _records(contents: Bytes) -> tuple[Int64s, Int64s]:
    """Positions and sizes of all records. A length of 0 ends the table for some readers, but not for the linker."""
    positions, sizes = [], []
    position, end = 0, len(contents)
    data = contents.tobytes()
    unpack = struct.Struct("<I").unpack_from
    while position + 4 <= end:
        (length,) = unpack(data, position)
        if length:
            if length > end - position - 4 or length < 8:
                raise TableError(f"the record at offset {position:#x} has {length} bytes")
            positions.append(position)
            sizes.append(length + 4)
        position += length + 4
    return np.array(positions, np.int64), np.array(sizes, np.int64)


def _read_cie(contents: Bytes, position: int, size: int, path: Path) -> Cie:
    record = contents[position : position + size].tobytes()
    end = record.find(b"\0", 9)
    augmentation = record[9:end]
    if end < 0 or record[8] not in (1, 3) or augmentation[:1] not in (b"z", b""):
        raise _unsupported(f"a CIE of version {record[8]}, augmentation {augmentation!r}", position, path)
    data = contents[position : position + size]
    cursor = np.array([end + 1])
    for _ in range(2):  # code and data alignment factors; a signed number has the same length as an unsigned one
        cursor = read_uleb(data, cursor)[1]
    cursor = cursor + 1 if record[8] == 1 else read_uleb(data, cursor)[1]  # return address register
    place = int(read_uleb(data, cursor)[1][0]) if augmentation else size
    pointer, lsda, personality, personality_size = 0x00, OMITTED, -1, 0
    for letter in augmentation[1:].decode("latin-1"):
        if letter == "S":  # a signal handler's frame: no data
            continue
        if letter not in "PLR" or place >= size:
            raise _unsupported(f"augmentation {augmentation!r}", position, path)
        encoding = record[place]
        place += 1
        if letter == "R":
            pointer = encoding
        elif letter == "L":
            lsda = encoding
        else:
            personality_size = _size(encoding & ~_INDIRECT, position, path)
            personality = position + place
            place += personality_size
    return Cie(
        position=position,
        size=size,
        augmented=bool(augmentation),
        pointer_size=_size(pointer, position, path),
        lsda_size=0 if lsda == OMITTED else _size(lsda, position, path),
        personality=personality,
        personality_size=personality_size,
    )


def _size(encoding: int, position: int, path: Path) -> int:
    """Bytes of a pointer that counts from its own place, the only kind that position-independent code needs."""
    if encoding & 0xF0 != _PC_RELATIVE or encoding & 0x0F not in _SIZES:
        raise _unsupported(f"pointer encoding {encoding:#x}", position, path)
    return _SIZES[encoding & 0x0F]


def _unsupported(what: str, position: int, path: Path) -> UnsupportedLibrary:
    return UnsupportedLibrary(
        f"the unwinding table has {what}, which cannot be moved",
        where=f"{path}, .eh_frame, offset {position:#x}",
        expected="augmentation z, P, L, R or S with pointers relative to their own place",
        remedy="keep this library as it is",
    )


def _read_fdes(contents: Bytes, address: int, fdes: Int64s, sizes: Int64s, cie: Cie) -> Int64s:
    """Rows `starts`, `ends`, `lsda_positions`, `lsdas` of the FDEs of one CIE."""
    first = fdes + 8
    size = cie.pointer_size
    starts = address + first + read_signed(contents, first, size)
    length = read_signed(contents, first + size, size)
    ends = starts + (length & 0xFFFF_FFFF if size == 4 else length)
    places, lsdas = np.full(len(fdes), -1, np.int64), np.full(len(fdes), -1, np.int64)
    if cie.augmented and cie.lsda_size:
        extra, behind = read_uleb(contents, first + 2 * size)
        has = extra >= cie.lsda_size
        distance = read_signed(contents, behind[has], cie.lsda_size)
        # A pointer of 0 means "none", whatever it counts from.
        lsdas[has] = np.where(distance == 0, -1, address + behind[has] + distance)
        places[has] = np.where(distance == 0, -1, behind[has])
    used = np.maximum(first + 2 * size, places + cie.lsda_size)
    if np.any(used > fdes + sizes):
        raise TableError("a record is too short for what it holds")
    return np.stack([starts, ends, places, lsdas])
