"""Sparing the loader the search for removed functions.

Some 20,000 slots of libtorch_cpu.so (in tables of vtables, kernels and type information that nothing uses any more)
get the address of a removed function by its name, each by a search through all libraries. Nobody will call them, and
if somebody does, the guard needs the address of our function. So these relocations become relative ones, which are
an addition. Functions that raise are left alone: their symbols lead to stubs, and another library may define them.
"""

from __future__ import annotations

import numpy as np

from opsieve.code.elf import RELOCATION, SHN_UNDEF, STT_FUNC, ElfFile, Int64s
from opsieve.code.links import R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_RELATIVE
from opsieve.runtimes.wheel.library.fields import write_signed
from opsieve.runtimes.wheel.library.image import Image
from opsieve.runtimes.wheel.library.ranges import Ranges

_INFO, _ADDEND = 8, 16
"""Where these fields stand in a record of `.rela.dyn`."""


def settle_removed(elf: ElfFile, image: Image, removed: Ranges, raising: Int64s) -> int:
    """Make the relocations that name removed functions relative; returns how many.

    `raising`: start addresses of the functions that have a stub, in any order.
    """
    table = elf.relocations
    kind = table["info"] & np.uint64(0xFFFF_FFFF)
    rows = np.flatnonzero((kind == R_X86_64_64) | (kind == R_X86_64_GLOB_DAT))
    symbols = elf.dynamic_symbols[(table["info"][rows] >> np.uint64(32)).astype(np.int64)]
    # GLOB_DAT ignores the addend.
    addend = np.where(kind[rows] == R_X86_64_64, table["addend"][rows], 0)
    target = symbols["value"].astype(np.int64) + addend
    ours = (symbols["shndx"] != SHN_UNDEF) & (symbols["info"] & 15 == STT_FUNC)
    chosen = ours & removed.contains(target) & ~np.isin(symbols["value"].astype(np.int64), raising)
    if not chosen.any():
        return 0
    size = RELOCATION.itemsize
    places = image.positions(elf.section(".rela.dyn").address + rows[chosen] * size, size)
    write_signed(image.data, places + _INFO, np.full(len(places), R_X86_64_RELATIVE), 8)
    write_signed(image.data, places + _ADDEND, target[chosen], 8)
    return len(places)
