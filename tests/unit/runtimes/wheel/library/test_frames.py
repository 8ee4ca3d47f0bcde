"""Unwinding records of every encoding that is understood, and clear refusals of the others."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from opsieve.code.elf import Section
from opsieve.errors import InvalidLibrary, OpsieveError, UnsupportedLibrary
from opsieve.runtimes.wheel.library.frames import FrameTable, read_frames

ADDRESS = 0x5000


@dataclass(frozen=True)
class FakeLibrary:
    """As much of an ElfFile as the reader of unwinding records asks for."""

    frames: bytes
    path: Path = Path("lib.so")

    def find_section(self, name: str) -> Section | None:
        return Section(1, name, 1, 2, ADDRESS, 0, len(self.frames), 0)

    def contents(self, _: Section) -> np.ndarray:
        return np.frombuffer(self.frames, np.uint8)


def read(*records: bytes) -> FrameTable:
    table = read_frames(FakeLibrary(b"".join(records)))  # type: ignore[arg-type]
    assert table is not None
    return table


def record(body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    return struct.pack("<I", len(body)) + body


def cie(augmentation: bytes, data: bytes, version: int = 1) -> bytes:
    length = bytes([len(data)]) if augmentation else b""
    return record(bytes([0, 0, 0, 0, version]) + augmentation + b"\0\x01\x78\x10" + length + data)


def fde(back: int, start: bytes, size: bytes, augmentation: bytes | None = b"") -> bytes:
    extra = b"" if augmentation is None else bytes([len(augmentation)]) + augmentation
    return record(struct.pack("<I", back) + start + size + extra + b"\x41\x0e\x10")


def i4(value: int) -> bytes:
    return struct.pack("<i", value)


def i8(value: int) -> bytes:
    return struct.pack("<q", value)


def test_addresses_count_from_their_own_place() -> None:
    common = cie(b"zR", b"\x1b")
    first = fde(len(common) + 4, i4(-0x100), i4(0x40))
    second = fde(len(common) + len(first) + 4, i4(0x200), i4(0x10))
    table = read(common, first, second, bytes(4))
    places = [ADDRESS + len(common) + 8, ADDRESS + len(common) + len(first) + 8]
    assert table.starts.tolist() == [places[0] - 0x100, places[1] + 0x200]
    assert (table.ends - table.starts).tolist() == [0x40, 0x10]
    assert table.lsdas.tolist() == [-1, -1]


def test_handlers_and_personality() -> None:
    common = cie(b"zPLR", b"\x9b" + i4(0x777) + b"\x1b\x1b")
    with_handler = fde(len(common) + 4, i4(0), i4(8), i4(0x50))
    without = fde(len(common) + len(with_handler) + 4, i4(0), i4(8), i4(0))
    table = read(common, with_handler, without)
    assert table.lsdas.tolist() == [ADDRESS + len(common) + 17 + 0x50, -1]
    assert table.cies[0].personality == 9 + 5 + 3 + 1 + 1
    assert table.cies[0].personality_size == 4


def test_long_pointers_and_signal_frames() -> None:
    common = cie(b"zRS", b"\x1c")
    table = read(common, fde(len(common) + 4, i8(-0x1000), i8(0x20)))
    assert table.starts.tolist() == [ADDRESS + len(common) + 8 - 0x1000]
    assert table.pointer_sizes.tolist() == [8]


def test_records_of_several_kinds_are_told_apart() -> None:
    one, two = cie(b"zR", b"\x1b"), cie(b"zLR", b"\x1c\x1b", version=3)
    first = fde(len(one) + len(two) + 4, i4(0x10), i4(1))
    second = fde(len(two) + len(first) + 4, i4(0x10), i4(1), i8(0x30))
    table = read(one, two, first, second)
    assert table.cie.tolist() == [0, 1]
    assert table.lsda_sizes.tolist() == [0, 8]
    assert table.lsdas[0] == -1
    assert table.lsdas[1] > 0


@pytest.mark.parametrize(
    ("augmentation", "data", "said"),
    [
        (b"zR", b"\x00", "pointer encoding 0x0"),  # absolute
        (b"zR", b"\x3b", "pointer encoding 0x3b"),  # relative to the data segment
        (b"zR", b"\x1a", "pointer encoding 0x1a"),  # two bytes
        (b"zX", b"\x1b", "augmentation b'zX'"),
        (b"eh", b"", "augmentation b'eh'"),
        (b"zPR", b"\x9b\0", "augmentation b'zPR'"),  # too short
    ],
)
def test_other_forms_are_refused_by_name(augmentation: bytes, data: bytes, said: str) -> None:
    with pytest.raises(UnsupportedLibrary) as caught:
        read(cie(augmentation, data))
    assert said in str(caught.value)
    assert "lib.so, .eh_frame, offset 0x0" in str(caught.value)


GOOD = cie(b"zPLR", b"\x9b" + i4(0x777) + b"\x1b\x1b")
GOOD += fde(len(GOOD) + 4, i4(0), i4(8), i4(0x50))


@pytest.mark.parametrize(
    "broken",
    [
        record(b"\0\0"),
        struct.pack("<I", 400) + GOOD[4:],
        GOOD[: len(GOOD) - 8],
        cie(b"zR", b"\x1b") + fde(4, i4(0), i4(8)),  # names itself
        cie(b"zR", b"\x1b") + fde(0xFFFF0000, i4(0), i4(8)),
        cie(b"zPLR", b"\x9b" + i4(1) + b"\x1b\x1b") + record(struct.pack("<Iii", 28 + 4, 0, 8)),
    ],
)
def test_broken_records_are_errors(broken: bytes) -> None:
    with pytest.raises(InvalidLibrary, match=r"lib\.so, \.eh_frame"):
        read(broken)


@pytest.mark.parametrize("place", range(len(GOOD)))
def test_any_damaged_byte_is_read_or_refused(place: int) -> None:
    for value in (0, 1, 0x7F, 0x80, 0xFF):
        damaged = bytearray(GOOD)
        damaged[place] = value
        try:
            table = read(bytes(damaged))
        except OpsieveError:
            continue
        assert len(table) <= 2
