"""The vectorised decoder against what iced-x86 and capstone say of every single instruction."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import capstone
import numpy as np
import pytest
from capstone import x86_const
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.code.elf import ElfFile
from opsieve.code.functions import read_functions
from opsieve.code.x86_64 import Decoded, decode
from tests.unit.code.oracle import oracle
from tests.unit.native import Compiler

SOURCES = Path(__file__).parent / "sources"
BASE = 0x40_0000_0000
"""Far enough from both ends of the address space that no displacement wraps around."""


def triples(sites: np.ndarray, targets: np.ndarray, flags: np.ndarray) -> set[tuple[int, int, bool]]:
    return set(zip(sites.tolist(), targets.tolist(), flags.tolist(), strict=True))


def operands_of(found: Decoded) -> set[tuple[int, int, bool]]:
    return triples(found.operand_sites, found.operand_targets, found.operand_is_address)


def branches_of(found: Decoded) -> set[tuple[int, int, bool]]:
    return triples(found.branch_sites, found.branch_targets, found.branch_is_call)


def decode_all(code: bytes, base: int, functions: list[tuple[int, int]]) -> Decoded:
    starts, ends = (np.array(column, np.int64) for column in zip(*functions, strict=True))
    return decode(np.frombuffer(code, np.uint8), base, starts, ends)


def assert_agrees(code: bytes, functions: list[tuple[int, int]], base: int = BASE) -> None:
    found, expected = decode_all(code, base, functions), oracle(code, base, functions)

    def valid(sites: set[tuple[int, int, bool]]) -> set[tuple[int, int, bool]]:
        # An instruction that is none never runs. Taking it for a reference can only add one.
        return {triple for triple in sites if triple[0] not in expected.invalid | expected.narrow}

    assert found.instructions == expected.instructions
    assert valid(operands_of(found)) == expected.operands
    assert valid(branches_of(found)) == expected.branches
    falls_through = set(found.falls_through.tolist())
    assert falls_through - expected.unclear == expected.falls_through - expected.unclear


LIBRARIES = {
    "C++, -O2": ("shapes.cpp", ("-O2",)),
    "C++, -O0 with branch tracking": ("shapes.cpp", ("-O0", "-fcf-protection=full")),
    "C++, AVX-512": ("vectors.cpp", ("-O3", "-march=skylake-avx512")),
    "C++, AVX2 without PLT": ("vectors.cpp", ("-O3", "-march=haswell", "-fno-plt")),
    "assembly": ("instructions.s", ("-nostdlib",)),
}


@pytest.fixture(scope="module", params=LIBRARIES)
def elf(request: pytest.FixtureRequest, compiler: Compiler) -> ElfFile:
    source, flags = LIBRARIES[request.param]
    return ElfFile(compiler.library(SOURCES / source, flags=flags))


def whole(elf: ElfFile) -> tuple[bytes, int, list[tuple[int, int]]]:
    text, table = elf.section(".text"), read_functions(elf)
    bounds = [*table.entries.tolist(), text.end]
    return elf.contents(text).tobytes(), text.address, list(pairwise(bounds))


def test_compiled_code_is_read_as_iced_reads_it(elf: ElfFile) -> None:
    code, base, functions = whole(elf)
    assert_agrees(code, functions, base)
    expected = oracle(code, base, functions)
    assert len(expected.operands) > 8
    assert len(expected.branches) > 2
    assert not expected.invalid


def test_compiled_code_is_read_as_capstone_reads_it(elf: ElfFile) -> None:
    code, base, functions = whole(elf)
    reader = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    reader.detail = True
    operands, branches = set(), set()
    for start, end in functions:
        for instruction in reader.disasm(code[start - base : end - base], start):
            behind = instruction.address + instruction.size
            for operand in instruction.operands:
                if operand.type == x86_const.X86_OP_MEM and operand.mem.base == x86_const.X86_REG_RIP:
                    is_lea = instruction.id == x86_const.X86_INS_LEA
                    operands.add((instruction.address, behind + operand.mem.disp, is_lea))
            relative = (
                instruction.group(x86_const.X86_GRP_BRANCH_RELATIVE) or instruction.id == x86_const.X86_INS_XBEGIN
            )
            if relative and not start <= instruction.operands[0].imm < end:
                is_call = instruction.id == x86_const.X86_INS_CALL
                branches.add((instruction.address, instruction.operands[0].imm, is_call))
    found = decode_all(code, base, functions)
    assert operands_of(found) == operands
    assert branches_of(found) == branches


LEGACY = [0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3]
byte = st.integers(0, 255)
rip_modrm = st.integers(0, 7).map(lambda reg: reg << 3 | 5)
modrm = rip_modrm | byte
prefixes = st.lists(st.sampled_from([*LEGACY, *range(0x40, 0x50)]), max_size=4)
displacement = st.binary(min_size=4, max_size=4)
immediate = st.binary(max_size=4)
opcode = st.one_of(
    st.tuples(byte),
    st.tuples(st.just(0x0F), byte),
    st.tuples(st.just(0x0F), st.sampled_from([0x38, 0x3A]), byte),
    st.tuples(st.just(0xC5), byte, byte),
    st.tuples(st.just(0xC4), byte, byte, byte),
    st.tuples(st.just(0x62), byte, byte, byte, byte),
    st.tuples(st.just(0x8F), byte, byte, byte),
)
with_operand = st.tuples(prefixes, opcode, modrm, displacement, immediate).map(
    lambda t: bytes([*t[0], *t[1], t[2]]) + t[3] + t[4]
)
branch = st.tuples(
    prefixes,
    st.sampled_from(
        [(0xE8,), (0xE9,), (0xEB,), (0xC7, 0xF8), (0xFF, 0x25), (0xFF, 0x15)]
        + [(0x70 + n,) for n in range(16)]
        + [(0xE0 + n,) for n in range(4)]
        + [(0x0F, 0x80 + n) for n in range(16)]
    ),
    displacement,
).map(lambda t: bytes([*t[0], *t[1]]) + t[2])
filling = st.sampled_from(
    [b"\x90", b"\x66\x90", b"\x0f\x1f\x00", b"\x0f\x1f\x84\x00\0\0\0\0", b"\xc3", b"\0", b"\0\0", b"\xcc"]
)
stream = st.lists(with_operand | branch | filling | st.binary(max_size=16), min_size=1, max_size=6).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(stream.filter(bool), st.lists(st.integers(0, 200), max_size=4))
def test_any_bytes_are_read_as_iced_reads_them(code: bytes, cuts: list[int]) -> None:
    """Instructions of every encoding, whole and cut off, in functions that end anywhere."""
    bounds = sorted({BASE, *(BASE + cut for cut in cuts if cut < len(code)), BASE + len(code)})
    assert_agrees(code, list(pairwise(bounds)))


@settings(max_examples=50, deadline=None)
@given(stream.filter(lambda code: len(code) > 8), st.integers(1, 3), st.integers(1, 3))
def test_what_lies_between_the_functions_does_not_matter(code: bytes, before: int, behind: int) -> None:
    inner = [(BASE + before, BASE + len(code) - behind)]
    alone = decode_all(code[before:-behind], BASE + before, inner)
    found = decode_all(code, BASE, inner)
    assert operands_of(found) == operands_of(alone)
    assert branches_of(found) == branches_of(alone)
    assert found.instructions == alone.instructions


@settings(max_examples=100, deadline=None)
@given(prefixes, st.sampled_from([b"\x8d\x05", b"\x8b\x3d", b"\x0f\x10\x05", b"\x0f\x38\xf0\x05"]), displacement)
def test_prefixes_in_any_order_hide_no_operand(before: list[int], instruction: bytes, address: bytes) -> None:
    assert_agrees(bytes(before) + instruction + address, [(BASE, BASE + len(before) + len(instruction) + 4)])


@pytest.mark.parametrize(
    ("last", "falls"),
    [
        ("c3", False),
        ("c20800", False),
        ("ebfe", False),
        ("e9fbffffff", False),
        ("e8fbffffff", False),
        ("ff25fbffffff", False),
        ("ffe0", False),
        ("ffd0", False),
        ("0f0b", False),
        ("cc", False),
        ("f4", False),
        ("c3 9090", False),
        ("c3 660f1f840000000000", False),
        ("c3 0000", False),
        ("c3 00", False),
        ("75fe", True),
        ("0f85fbffffff", True),
        ("89c0", True),
        ("89c0 90", True),
        ("c3 4190", True),
        ("c3 4890", False),
        ("ff30", True),
        ("c7f8fbffffff", True),
    ],
)
def test_what_a_function_may_end_with(last: str, falls: bool) -> None:
    code = bytes.fromhex("89c1" + last.replace(" ", ""))
    found = decode_all(code, BASE, [(BASE, BASE + len(code))])
    assert found.falls_through.tolist() == ([BASE + len(code)] if falls else [])
    assert_agrees(code, [(BASE, BASE + len(code))])
