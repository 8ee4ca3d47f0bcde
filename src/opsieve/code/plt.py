"""The procedure linkage table: where a call through it ends up.

More than half of the direct calls in libtorch_cpu.so go through the PLT, because exported functions may be replaced
by another library. An entry jumps through a slot of the global offset table, and the relocation of that slot names
the symbol. Entries are found by their jump, so the layouts of GNU ld, gold and lld are all understood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, Bytes, ElfFile, Int64s
from opsieve.code.links import R_X86_64_IRELATIVE, kinds_and_symbols, symbol_values

PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got", ".iplt")
_ENTRY_ALIGNMENT = 8
_JUMP_SIZE = 6


@dataclass(frozen=True, slots=True)
class Plt:
    """All entries in address order, as parallel arrays."""

    entries: Int64s
    symbols: Int64s
    """Index into `.dynsym`, one per entry; 0 for an entry whose target has no symbol there."""

    targets: Int64s
    """Where the entry leads if this library defines it, else -1. For an indirect function: its resolver, which in turn
    leads to every implementation."""

    def index(self, addresses: Int64s) -> Int64s:
        """The entry that starts at each address, -1 where none does."""
        if not len(self.entries):
            return np.full(len(addresses), -1, np.int64)
        found = np.minimum(np.searchsorted(self.entries, addresses), len(self.entries) - 1)
        return np.where(self.entries[found] == addresses, found, -1)

    def resolve(self, addresses: Int64s) -> Int64s:
        """Replace addresses of entries by where they lead (-1: another library); others stay as they are."""
        index = self.index(addresses)
        through = index >= 0
        resolved = addresses.copy()
        resolved[through] = self.targets[index[through]]
        return resolved


def read_plt(elf: ElfFile) -> Plt:
    """Find every entry and what is behind it."""
    slots = np.concatenate([elf.plt_relocations, elf.relocations])
    kind, symbol = kinds_and_symbols(elf, slots)
    target = np.where(elf.dynamic_symbols["shndx"][symbol] != SHN_UNDEF, symbol_values(elf, symbol), -1)
    target = np.where(kind == R_X86_64_IRELATIVE, slots["addend"], target)
    named = np.flatnonzero((symbol > 0) | (kind == R_X86_64_IRELATIVE))
    named = named[np.argsort(slots["offset"][named], kind="stable")]
    addresses = slots["offset"][named].astype(np.int64)
    entries, used = _jumps_through_slots(elf)
    if not len(named):
        return Plt(*(np.empty(0, np.int64) for _ in range(3)))
    index = np.minimum(np.searchsorted(addresses, used), len(addresses) - 1)
    known = addresses[index] == used
    behind = named[index[known]]
    return Plt(entries[known], symbol[behind], target[behind])


def unknown_entries(elf: ElfFile, plt: Plt, addresses: Int64s) -> Int64s:
    """Those of `addresses` that lie in the table and start no entry that we know."""
    sections = [found for name in PLT_SECTIONS if (found := elf.find_section(name))]
    inside = np.zeros(len(addresses), bool)
    for section in sections:
        inside |= (addresses >= section.address) & (addresses < section.end)
    lost: Int64s = addresses[inside & (plt.index(addresses) < 0)]
    return lost


def _jumps_through_slots(elf: ElfFile) -> tuple[Int64s, Int64s]:
    """Every `jmp *slot(%rip)` (FF 25) of the PLT sections: the entry it stands in, and the slot it uses."""
    entries, slots = [], []
    for name in PLT_SECTIONS:
        section = elf.find_section(name)
        if section is None:
            continue
        code = elf.contents(section)
        if len(code) < _JUMP_SIZE:
            continue
        position = np.flatnonzero((code[:-5] == 0xFF) & (code[1:-4] == 0x25))
        displacement = _displacements(code, position + 2)
        entries.append(section.address + position // _ENTRY_ALIGNMENT * _ENTRY_ALIGNMENT)
        slots.append(section.address + position + _JUMP_SIZE + displacement)
    if not entries:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    found, first = np.unique(np.concatenate(entries), return_index=True)
    return found, np.concatenate(slots)[first]


def _displacements(code: Bytes, position: Int64s) -> Int64s:
    window = np.lib.stride_tricks.sliding_window_view(code, 4)[position]
    return np.ascontiguousarray(window).view("<i4")[:, 0].astype(np.int64)
