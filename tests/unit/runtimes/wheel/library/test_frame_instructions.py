"""Where unwinding programs end, and which of them hold an address."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.runtimes.wheel.library.fields import TableError
from opsieve.runtimes.wheel.library.frame_instructions import read_programs

NOP, SET_LOCATION = b"\x00", b"\x01" + bytes(4)
ORDINARY = [
    b"\x41",  # advance_loc 1
    b"\x02\x01",  # advance_loc1 1
    b"\x03\x01\x01",  # advance_loc2
    b"\x04\x01\x00\x01\x00",  # advance_loc4
    b"\x86\x02",  # offset r6
    b"\xc6",  # restore r6
    b"\x05\x01\x81\x01",  # offset_extended
    b"\x0c\x07\x01",  # def_cfa
    b"\x0e\x90\x01",  # def_cfa_offset 144
    b"\x0a",  # remember_state
    b"\x0b",  # restore_state
    b"\x0f\x03\x77\x01\x06",  # def_cfa_expression
    b"\x10\x06\x02\x76\x01",  # expression r6
    b"\x16\x07\x01\x01",  # val_expression r7
    b"\x2e\x01",  # GNU_args_size
    b"\x13\x7f",  # def_cfa_offset_sf
]


def read(*programs: bytes) -> tuple[list[int], list[bool]]:
    sizes = np.array([len(program) for program in programs], np.int64)
    ends = np.cumsum(sizes)
    found = read_programs(np.frombuffer(b"".join(programs), np.uint8), ends - sizes, ends)
    return (found.ends - (ends - sizes)).tolist(), found.fixed.tolist()


@given(st.lists(st.tuples(st.lists(st.sampled_from([*ORDINARY, NOP])), st.integers(0, 7)), max_size=8))
def test_padding_is_what_follows_the_last_instruction(programs: list[tuple[list[bytes], int]]) -> None:
    bodies = [b"".join(instructions) for instructions, _ in programs]
    trimmed = []
    for instructions, _ in programs:
        while instructions and instructions[-1] == NOP:
            instructions = instructions[:-1]
        trimmed.append(len(b"".join(instructions)))
    padded = [body + bytes(padding) for body, (_, padding) in zip(bodies, programs, strict=True)]
    assert read(*padded) == (trimmed, [False] * len(programs))


@given(st.lists(st.sampled_from(ORDINARY), max_size=5), st.lists(st.sampled_from(ORDINARY), max_size=5))
def test_an_address_is_found_wherever_it_is(before: list[bytes], after: list[bytes]) -> None:
    program = b"".join([*before, SET_LOCATION, *after])
    assert read(b"\x41", program)[1] == [False, True]


@pytest.mark.parametrize("program", [b"\x17\x00", b"\x3f", b"\x41\x1c"])
def test_unknown_instructions_are_errors(program: bytes) -> None:
    with pytest.raises(TableError, match="unknown"):
        read(program)


@pytest.mark.parametrize("program", [b"\x0e", b"\x0e\x80", b"\x10\x06"])
def test_numbers_that_do_not_end_are_errors(program: bytes) -> None:
    with pytest.raises(TableError):
        read(program)
