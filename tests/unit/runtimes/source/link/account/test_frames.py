"""Unwinding tables put together by hand."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.link.account.frames import read_frames
from opsieve.runtimes.source.link.account.object_file import Relocations

HERE = Path("a.o")
COMMON, FRAME = 0, 1


def table(*records: tuple[int, int]) -> np.ndarray:
    """Records of a kind (0 for a common one) and a number of further words."""
    content = b"".join(struct.pack(f"<II{words}I", 4 + 4 * words, kind, *[0] * words) for kind, words in records)
    return np.frombuffer(content + b"\0\0\0\0", np.uint8)


def relocations(*offsets: int) -> Relocations:
    places = np.array(offsets, np.int64)
    zeros = np.zeros_like(places)
    return Relocations(zeros, places, zeros, zeros)


def test_functions_handlers_and_personalities() -> None:
    content = table((COMMON, 4), (FRAME, 4), (FRAME, 6), (COMMON, 4), (FRAME, 4))
    found = read_frames(content, relocations(12, 32, 56, 70, 100, 122), HERE)
    assert found.functions.tolist() == [1, 2, 5]
    assert found.sizes.tolist() == [24, 32, 28]  # the last with the mark of the end
    assert (found.further.tolist(), found.further_of.tolist()) == ([3], [2])
    assert found.common.tolist() == [0, 4]


def test_nothing() -> None:
    for content in (np.empty(0, np.uint8), table()):
        assert not len(read_frames(content, relocations(), HERE).functions)
    assert not len(read_frames(table((COMMON, 2)), relocations(), HERE).common)


def test_tables_joined_by_a_linker() -> None:
    first, second = table((COMMON, 2), (FRAME, 3)), table((COMMON, 2), (FRAME, 3))
    found = read_frames(np.concatenate([first, second]), relocations(24, 64), HERE)
    assert found.functions.tolist() == [0, 1]


@pytest.mark.parametrize("length", [0xFFFFFFFF, 6])
def test_records_of_other_kinds_are_refused(length: int) -> None:
    content = np.frombuffer(struct.pack("<III", length, 0, 0), np.uint8)
    with pytest.raises(InvalidFile, match="unwinding"):
        read_frames(content, relocations(), HERE)


def test_a_length_that_leads_out_of_the_section_ends_it() -> None:
    content = np.frombuffer(struct.pack("<III", 0x7FFFFFF0, 1, 0), np.uint8)
    assert read_frames(content, relocations(8), HERE).sizes.tolist() == [12]
