"""The procedure linkage table: where a call through it ends up.

More than half of the direct calls in libtorch_cpu.so go through the PLT, because exported functions may be replaced
by another library. An entry jumps through a slot of the global offset table, and the relocation of that slot names
the symbol. Entries are found by their jump, so the layouts of GNU ld, gold and lld are all understood.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, Bytes, ElfFile, Int64s

PLT_SECTIONS = (".plt", ".plt.sec", ".plt.got")
_ENTRY_ALIGNMENT = 8


@dataclass(frozen=True, slots=True)
class Plt:
    """All entries in address order, as parallel arrays."""

    entries: Int64s
    symbols: Int64s
    """Index into `.dynsym`, one per entry."""

    targets: Int64s
    """Address of the symbol if this library defines it, else -1."""

    low: int
    high: int
    """The addresses between which all entries lie."""

    def index(self, addresses: Int64s) -> Int64s:
        """The entry that each address belongs to, -1 for an address outside the table."""
        inside = (addresses >= self.low) & (addresses < self.high) & (len(self.entries) > 0)
        found = np.searchsorted(self.entries, addresses, "right") - 1
        return np.where(inside, found, -1)

    def resolve(self, addresses: Int64s) -> Int64s:
        """Replace addresses of entries by where they lead (-1: another library); others stay as they are."""
        index = self.index(addresses)
        through = index >= 0
        resolved = addresses.copy()
        resolved[through] = self.targets[index[through]]
        return resolved


def read_plt(elf: ElfFile) -> Plt:
    """Find every entry and the symbol behind it."""
    slots = np.concatenate([elf.plt_relocations, elf.relocations])
    symbol = (slots["info"] >> np.uint64(32)).astype(np.int64)
    slots, symbol = slots[symbol > 0], symbol[symbol > 0]
    order = np.argsort(slots["offset"], kind="stable")
    slot_addresses, slot_symbols = slots["offset"][order].astype(np.int64), symbol[order]
    entries, used = _jumps_through_slots(elf)
    index = np.searchsorted(slot_addresses, used)
    index[index == len(slot_addresses)] = 0
    known = slot_addresses[index] == used if len(slot_addresses) else np.zeros(len(used), bool)
    entries, symbols = entries[known], slot_symbols[index[known]]
    definition = elf.dynamic_symbols[symbols]
    defined = definition["shndx"] != SHN_UNDEF
    sections = [found for name in PLT_SECTIONS if (found := elf.find_section(name))]
    return Plt(
        entries=entries,
        symbols=symbols,
        targets=np.where(defined, definition["value"].astype(np.int64), -1),
        low=min((section.address for section in sections), default=0),
        high=max((section.end for section in sections), default=0),
    )


def _jumps_through_slots(elf: ElfFile) -> tuple[Int64s, Int64s]:
    """Every `jmp *slot(%rip)` (FF 25) of the PLT sections: the entry it stands in, and the slot it uses."""
    entries, slots = [], []
    for name in PLT_SECTIONS:
        section = elf.find_section(name)
        if section is None:
            continue
        code = elf.contents(section)
        position = np.flatnonzero((code[:-5] == 0xFF) & (code[1:-4] == 0x25))
        displacement = _displacements(code, position + 2)
        entries.append(section.address + position // _ENTRY_ALIGNMENT * _ENTRY_ALIGNMENT)
        slots.append(section.address + position + 6 + displacement)
    if not entries:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    found, first = np.unique(np.concatenate(entries), return_index=True)
    return found, np.concatenate(slots)[first]


def _displacements(code: Bytes, position: Int64s) -> Int64s:
    window = np.lib.stride_tricks.sliding_window_view(code, 4)[position]
    return np.ascontiguousarray(window).view("<i4")[:, 0].astype(np.int64)
