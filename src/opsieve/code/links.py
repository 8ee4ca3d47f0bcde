"""The pointers that the loader writes: which data slot holds the address of what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, ElfFile, Int64s
from opsieve.errors import InvalidLibrary, UnsupportedLibrary

# System V ABI, AMD64 supplement, table 4.9.
R_X86_64_NONE = 0
R_X86_64_64 = 1
R_X86_64_GLOB_DAT = 6
R_X86_64_JUMP_SLOT = 7
R_X86_64_RELATIVE = 8
R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64 = 16, 17, 18
R_X86_64_TLSDESC = 36
R_X86_64_IRELATIVE = 37

_BY_SYMBOL = (R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT)
_BY_ADDEND = (R_X86_64_RELATIVE, R_X86_64_IRELATIVE)
_NO_POINTER = (R_X86_64_NONE, R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC)
"""Offsets into thread-local storage: data, and never code."""


@dataclass(frozen=True, slots=True)
class Links:
    """Pointers into this library, sorted by slot. Those to other libraries are left out."""

    slots: Int64s
    targets: Int64s


def read_links(elf: ElfFile) -> Links:
    """All pointers that relocations create. Raises UnsupportedLibrary for a relocation we do not know,
    InvalidLibrary for one that names no symbol."""
    records = np.concatenate([elf.relocations, elf.plt_relocations])
    kind = (records["info"] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    unknown = np.setdiff1d(kind, (*_BY_SYMBOL, *_BY_ADDEND, *_NO_POINTER))
    if len(unknown):
        raise UnsupportedLibrary(
            f"relocations of type {unknown[0]} are not understood, so pointers could be missed",
            where=elf.path,
        )
    symbol = (records["info"] >> np.uint64(32)).astype(np.int64)
    if np.any(symbol >= len(elf.dynamic_symbols)):
        raise InvalidLibrary("a relocation names a symbol that is not there", where=elf.path)
    definition = elf.dynamic_symbols[symbol]
    addend = records["addend"].astype(np.int64)
    value = definition["value"].astype(np.int64)
    # GLOB_DAT and JUMP_SLOT ignore the addend.
    value += np.where(kind == R_X86_64_64, addend, 0)
    by_symbol = np.isin(kind, _BY_SYMBOL) & (definition["shndx"] != SHN_UNDEF)
    by_addend = np.isin(kind, _BY_ADDEND)
    found = by_symbol | by_addend
    slots = records["offset"].astype(np.int64)[found]
    targets = np.where(by_addend, addend, value)[found]
    order = np.argsort(slots, kind="stable")
    return Links(slots[order], targets[order])
