"""Stubs that raise: what the ways into a removed function are led to, so that a call becomes an ordinary error.

A stub loads the arguments of `c10::detail::torchCheckFail(function, file, line, message)` and jumps to it. Because it
jumps, no frame of the stub exists: to the unwinder the caller has called torchCheckFail itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, Bytes, ElfFile, Int64s, Records
from opsieve.code.links import R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT
from opsieve.code.plt import PLT_SECTIONS
from opsieve.errors import UnsupportedLibrary
from opsieve.runtimes.wheel.library.fields import read_signed, write_signed

THROWER = b"_ZN3c106detail14torchCheckFailEPKcS2_jS2_"
"""`c10::detail::torchCheckFail(char const*, char const*, unsigned int, char const*)` of c10/util/Exception.h."""

STUB_SIZE = 32
_SLOT_TYPES = (R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT)
"""The loader puts the address of the symbol there."""

_PLACE = b"removed by opsieve"
"""What stands where a stack trace shows the source file."""

_D = "00000000"
"""Room for a displacement of 32 bits."""


@dataclass(frozen=True, slots=True)
class PrunedError:
    """The error that one stub raises: the function or operator it names, and the message."""

    function: str
    message: str


@dataclass(frozen=True, slots=True)
class Thrower:
    """Where torchCheckFail is found: code that leads there, or a slot that holds its address."""

    address: int
    is_slot: bool


def find_thrower(elf: ElfFile) -> Thrower:
    """Look for torchCheckFail among what the library imports and defines.

    An entry of the PLT is preferred, even for the library's own function, so that interposition works as it did.
    Raises UnsupportedLibrary if the library never calls it: then it has no operators either.
    """
    for table in (elf.plt_relocations, elf.relocations):
        slot = _slot(elf, table)
        if slot is not None:
            entry = _plt_entry(elf, slot)
            return Thrower(slot, is_slot=True) if entry is None else Thrower(entry, is_slot=False)
    for symbol in elf.dynamic_symbols[elf.dynamic_symbols["shndx"] != SHN_UNDEF]:
        if elf.name(".dynstr", int(symbol["name"])) == THROWER:
            return Thrower(int(symbol["value"]), is_slot=False)
    raise UnsupportedLibrary(
        "the library does not use c10::detail::torchCheckFail, so removed functions cannot raise",
        where=elf.path,
        expected="a library of PyTorch 1.9 or later",
    )


def _slot(elf: ElfFile, relocations: Records) -> int | None:
    """The slot that one of these relocations fills with the address of torchCheckFail."""
    kind = relocations["info"] & np.uint64(0xFFFF_FFFF)
    for relocation in relocations[np.isin(kind, _SLOT_TYPES)]:
        symbol = elf.dynamic_symbols[int(relocation["info"] >> np.uint64(32))]
        if elf.name(".dynstr", int(symbol["name"])) == THROWER:
            return int(relocation["offset"])
    return None


def _plt_entry(elf: ElfFile, slot: int) -> int | None:
    """The address of the jump through `slot` in its PLT entry; what may stand before it only marks the entry."""
    for section in filter(None, map(elf.find_section, PLT_SECTIONS)):
        code = elf.contents(section)
        jumps = np.flatnonzero((code[:-5] == 0xFF) & (code[1:-4] == 0x25))
        targets = section.address + jumps + 6 + read_signed(code, jumps + 2, 4)
        if np.any(targets == slot):
            return section.address + int(jumps[targets == slot][0])
    return None


@dataclass(frozen=True, slots=True)
class Stubs:
    """One stub for each error, and the strings they use."""

    thrower: Thrower
    strings: bytes
    names: Int64s
    """Offset in `strings` of the function that each error names; the place stands at offset 0."""

    messages: Int64s
    """Offset in `strings` of each message."""

    @property
    def code_size(self) -> int:
        """Bytes of code."""
        return STUB_SIZE * len(self.names)

    def render(self, address: int, strings_address: int) -> Bytes:
        """The code of all stubs as it is to stand at `address`; stub i is `STUB_SIZE * i` behind it."""
        jump = "ff25" if self.thrower.is_slot else "e9"
        code = bytes.fromhex(f"488d3d{_D}488d35{_D}31d2488d0d{_D}{jump}{_D}").ljust(STUB_SIZE, b"\xcc")
        data = np.tile(np.frombuffer(code, np.uint8), len(self.names))
        start = address + STUB_SIZE * np.arange(len(self.names))
        jump_at = 23 + len(jump) // 2
        for at, target in (
            (3, strings_address + self.names),  # lea function(%rip), %rdi
            (10, np.full_like(start, strings_address)),  # lea file(%rip), %rsi; xor %edx, %edx for the line
            (19, strings_address + self.messages),  # lea message(%rip), %rcx
            (jump_at, np.full_like(start, self.thrower.address)),
        ):
            write_signed(data, start - address + at, target - (start + at + 4), 4)
        return data


def make_stubs(elf: ElfFile, errors: Sequence[PrunedError]) -> Stubs:
    """Plan one stub for each error. Raises UnsupportedLibrary if the library cannot throw."""
    strings = bytearray(_PLACE + b"\0")
    known: dict[str, int] = {}

    def place(text: str) -> int:
        if text not in known:
            known[text] = len(strings)
            strings.extend(text.encode() + b"\0")
        return known[text]

    names = np.array([place(error.function) for error in errors], np.int64)
    messages = np.array([place(error.message) for error in errors], np.int64)
    return Stubs(find_thrower(elf), bytes(strings), names, messages)
