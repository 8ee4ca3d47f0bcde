"""Leading every known way into a removed function to its stub.

Writing a jump over the entry of each removed function would keep its page in the file, 4 KB for 5 bytes. Instead the
references are changed: the value of the exported symbol, the addend of the relocation that fills a table, and the
displacement of a call, a jump or a LEA in kept code. An entry whose page is in the file anyway gets its jump too,
which catches the ways nobody knows of; whatever else reaches a removed function meets the guard.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import RELOCATION, SHN_UNDEF, STT_FUNC, SYMBOL, ElfFile, Int64s, Section
from opsieve.code.links import R_X86_64_64, R_X86_64_RELATIVE
from opsieve.code.references import References
from opsieve.runtimes.wheel.library.fields import read_signed, write_signed
from opsieve.runtimes.wheel.library.image import Image
from opsieve.runtimes.wheel.library.ranges import Flags, Ranges
from opsieve.runtimes.wheel.library.stubs import STUB_SIZE

_SYMBOL_VALUE, _SYMBOL_SIZE, _ADDEND = 8, 16, 16
"""Where these fields stand in a record of `.dynsym` or `.rela.dyn`."""

_JUMP = 0xE9
_JUMP_SIZE = 5
_LONGEST_INSTRUCTION = 15


@dataclass(frozen=True, slots=True, eq=False)
class Redirects:
    """Which removed functions raise, as parallel arrays in address order."""

    starts: Int64s
    ends: Int64s
    errors: Int64s
    """Index into the errors, one per function."""

    def find(self, addresses: Int64s) -> tuple[Flags, Int64s]:
        """For each address whether a function starts there, and the error it raises."""
        if not len(self.starts):
            return np.zeros(len(addresses), bool), np.zeros(0, np.int64)
        index = np.minimum(np.searchsorted(self.starts, addresses), len(self.starts) - 1)
        found = self.starts[index] == addresses
        return found, self.errors[index[found]]


@dataclass(frozen=True, slots=True)
class RedirectReport:
    """How many ways were led to stubs."""

    symbols: int
    relocations: int
    instructions: int
    entries: int
    unchanged: int
    """References in kept code that have no room for the distance (short jumps); the guard catches these."""


def redirect(
    elf: ElfFile, image: Image, redirects: Redirects, stubs: int, references: References, kept: Ranges
) -> RedirectReport:
    """Change all references in `image`. `stubs` is the address of the stubs, `kept` the code that stays."""
    instructions, unchanged = _instructions(image, redirects, stubs, references, kept)
    return RedirectReport(
        symbols=_symbols(elf, image, redirects, stubs),
        relocations=_relocations(elf, image, redirects, stubs),
        instructions=instructions,
        entries=_entries(image, redirects, stubs),
        unchanged=unchanged,
    )


def _symbols(elf: ElfFile, image: Image, redirects: Redirects, stubs: int) -> int:
    """The value of exported functions: calls from other libraries and through the PLT go by it."""
    symbols = elf.dynamic_symbols
    function = (symbols["shndx"] != SHN_UNDEF) & (symbols["info"] & 15 == STT_FUNC)
    rows = np.flatnonzero(function)
    found, errors = redirects.find(symbols["value"][rows].astype(np.int64))
    places = _rows(image, elf.section(".dynsym"), rows[found], SYMBOL.itemsize) if found.any() else rows[:0]
    write_signed(image.data, places + _SYMBOL_VALUE, stubs + STUB_SIZE * errors, 8)
    write_signed(image.data, places + _SYMBOL_SIZE, np.full_like(errors, STUB_SIZE), 8)
    return len(places)


def _relocations(elf: ElfFile, image: Image, redirects: Redirects, stubs: int) -> int:
    """The addends of relocations that put the address of a function into a table: kernels, functors, vtables."""
    table = elf.relocations
    kind = table["info"] & np.uint64(0xFFFF_FFFF)
    symbol = table["info"] >> np.uint64(32)
    rows = np.flatnonzero((kind == R_X86_64_RELATIVE) | ((kind == R_X86_64_64) & (symbol == 0)))
    found, errors = redirects.find(table["addend"][rows])
    if not found.any():
        return 0
    places = _rows(image, elf.section(".rela.dyn"), rows[found], RELOCATION.itemsize)
    write_signed(image.data, places + _ADDEND, stubs + STUB_SIZE * errors, 8)
    return len(places)


def _rows(image: Image, section: Section, rows: Int64s, size: int) -> Int64s:
    return image.positions(section.address + rows * size, size)


def _instructions(
    image: Image, redirects: Redirects, stubs: int, references: References, kept: Ranges
) -> tuple[int, int]:
    """Calls, jumps and LEAs in kept code; returns how many were changed and how many could not be."""
    address = references.operand_is_address
    sites = np.concatenate([references.branch_sites, references.operand_sites[address]])
    targets = np.concatenate([references.branch_targets, references.operand_targets[address]])
    found, errors = redirects.find(targets)
    sites, targets = sites[found], targets[found]
    inside = kept.contains(sites)
    sites, targets, errors = sites[inside], targets[inside], errors[inside]
    places = _displacements(image, sites, targets)
    known = places >= 0
    distance = stubs + STUB_SIZE * errors[known] - (sites[known] + places[known] + 4)
    write_signed(image.data, image.positions(sites[known] + places[known], 4), distance, 4)
    return int(known.sum()), int((~known).sum())


def _displacements(image: Image, sites: Int64s, targets: Int64s) -> Int64s:
    """How far behind the start of each instruction its 32-bit displacement lies, -1 where it has none.

    Branches and LEAs end with their displacement, so it is the place from which a number, counted from behind itself,
    gives the known target. No other place of the instruction can: one byte off, the number would be 256 times off.
    """
    places = np.full(len(sites), -1, np.int64)
    for place in range(1, _LONGEST_INSTRUCTION - 3):
        open_ones = np.flatnonzero((places < 0) & image.holds(sites + place, 4))
        number = read_signed(image.data, image.positions(sites[open_ones] + place, 4), 4)
        hit = sites[open_ones] + place + 4 + number == targets[open_ones]
        places[open_ones[hit]] = place
    return places


def _entries(image: Image, redirects: Redirects, stubs: int) -> int:
    room = (redirects.ends - redirects.starts >= _JUMP_SIZE) & image.holds(redirects.starts, _JUMP_SIZE)
    room &= ~image.shared.overlaps(redirects.starts, redirects.starts + _JUMP_SIZE)
    starts = redirects.starts[room]
    places = image.positions(starts, _JUMP_SIZE)
    image.data[places] = _JUMP
    distance = stubs + STUB_SIZE * redirects.errors[room] - (starts + _JUMP_SIZE)
    write_signed(image.data, places + 1, distance, 4)
    return len(places)
