"""Numbers at many places at once against the plain way, one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.runtimes.wheel.library.fields import (
    TableError,
    gather,
    read_signed,
    read_sleb,
    read_uleb,
    write_signed,
)


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def sleb(value: int) -> bytes:
    out = bytearray()
    while True:
        byte = value & 0x7F
        value >>= 7
        done = value == (-1 if byte & 0x40 else 0)
        out.append(byte | (0 if done else 0x80))
        if done:
            return bytes(out)


def packed(parts: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.array([len(part) for part in parts], np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), np.cumsum(sizes) - sizes


@given(st.lists(st.integers(0, (1 << 62) - 1), max_size=20))
def test_unsigned_leb128(values: list[int]) -> None:
    data, positions = packed([uleb(value) for value in values])
    found, ends = read_uleb(data, positions)
    assert found.tolist() == values
    assert ends.tolist() == [*positions[1:].tolist(), len(data)][: len(values)]


@given(st.lists(st.integers(-(1 << 61), (1 << 61) - 1), max_size=20))
def test_signed_leb128(values: list[int]) -> None:
    data, positions = packed([sleb(value) for value in values])
    assert read_sleb(data, positions)[0].tolist() == values


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=20), st.sampled_from([4, 8]))
def test_what_is_written_is_read(values: list[int], size: int) -> None:
    data = np.zeros(size * len(values) + 3, np.uint8)
    places = 3 + size * np.arange(len(values))[::-1]
    write_signed(data, places, np.array(values, np.int64), size)
    assert read_signed(data, places, size).tolist() == values
    assert data[:3].tolist() == [0, 0, 0]


@given(st.binary(max_size=60), st.data())
def test_gathering(contents: bytes, data: st.DataObject) -> None:
    place = st.integers(0, len(contents))
    cuts = data.draw(st.lists(st.tuples(place, place).map(sorted), max_size=8))
    starts = np.array([low for low, _ in cuts], np.int64)
    sizes = np.array([high - low for low, high in cuts], np.int64)
    joined, offsets = gather(np.frombuffer(contents, np.uint8), starts, sizes)
    assert joined.tobytes() == b"".join(contents[low:high] for low, high in cuts)
    assert offsets.tolist() == (np.cumsum(sizes) - sizes).tolist()


@pytest.mark.parametrize("contents", [b"\x80", b"\x80" * 12 + b"\x01", b""])
def test_a_number_without_end_is_an_error(contents: bytes) -> None:
    with pytest.raises(TableError):
        read_uleb(np.frombuffer(contents, np.uint8), np.array([0]))


@pytest.mark.parametrize("place", [-1, 5, 1 << 40])
def test_a_place_outside_is_an_error(place: int) -> None:
    with pytest.raises(TableError, match="outside"):
        read_signed(np.zeros(8, np.uint8), np.array([place]), 4)


def test_a_distance_of_two_gigabytes_is_an_error() -> None:
    with pytest.raises(OverflowError):
        write_signed(np.zeros(8, np.uint8), np.array([0]), np.array([1 << 31]), 4)
