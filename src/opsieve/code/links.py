"""The pointers that the loader writes: which data slot holds the address of what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import SHN_UNDEF, STT_GNU_IFUNC, ElfFile, Int64s, Records
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
_THREAD_LOCAL = (R_X86_64_DTPMOD64, R_X86_64_DTPOFF64, R_X86_64_TPOFF64, R_X86_64_TLSDESC)
_RELOCATION_SECTIONS = (".rela.dyn", ".rela.plt")
_SHT_RELA, _SHT_REL, _SHT_RELR = 4, 9, 19
_SHT_ANDROID_REL, _SHT_ANDROID_RELA = 0x60000001, 0x60000002


@dataclass(frozen=True, slots=True)
class Links:
    """Pointers into this library, sorted by slot. Those to other libraries are left out."""

    slots: Int64s
    targets: Int64s


def read_links(elf: ElfFile) -> Links:
    """All pointers that relocations create.

    Raises UnsupportedLibrary for a relocation we do not know, or one that stands where we do not look for it, and
    InvalidLibrary for one that names no symbol.
    """
    _require_known_sections(elf)
    records = np.concatenate([elf.relocations, elf.plt_relocations])
    kind, symbol = kinds_and_symbols(elf, records)
    unknown = np.setdiff1d(kind, (R_X86_64_NONE, *_BY_SYMBOL, *_BY_ADDEND, *_THREAD_LOCAL))
    if len(unknown):
        raise UnsupportedLibrary(
            f"relocations of type {unknown[0]} are not understood, so pointers could be missed",
            where=elf.path,
        )
    addend = records["addend"].astype(np.int64)
    # GLOB_DAT and JUMP_SLOT ignore the addend.
    value = symbol_values(elf, symbol) + np.where(kind == R_X86_64_64, addend, 0)
    by_symbol = np.isin(kind, _BY_SYMBOL) & (elf.dynamic_symbols["shndx"][symbol] != SHN_UNDEF)
    by_addend = np.isin(kind, _BY_ADDEND)
    initial = elf.find_section(".tdata")
    by_thread = np.isin(kind, _THREAD_LOCAL) & (initial is not None)
    target = np.where(by_addend, addend, value)
    if initial is not None:
        # Code finds thread-local storage by offsets, never by address: whoever uses an offset can read all of it.
        target = np.where(by_thread, initial.address, target)
    found = by_symbol | by_addend | by_thread
    slots = records["offset"].astype(np.int64)[found]
    order = np.argsort(slots, kind="stable")
    return Links(slots[order], target[found][order])


def kinds_and_symbols(elf: ElfFile, records: Records) -> tuple[Int64s, Int64s]:
    """The type of each relocation, and the index of its symbol in `.dynsym`. Raises InvalidLibrary for an index that
    is too large."""
    symbol = (records["info"] >> np.uint64(32)).astype(np.int64)
    if np.any(symbol >= len(elf.dynamic_symbols)):
        raise InvalidLibrary("a relocation names a symbol that is not there", where=elf.path)
    return (records["info"] & np.uint64(0xFFFFFFFF)).astype(np.int64), symbol


def symbol_values(elf: ElfFile, symbol: Int64s) -> Int64s:
    """The addresses of some symbols of `.dynsym`."""
    return elf.dynamic_symbols["value"][symbol].astype(np.int64)


def resolvers(elf: ElfFile) -> Int64s:
    """Addresses of the functions that choose an implementation of an indirect function: the loader calls them while
    it relocates the library, whether the function is ever used or not."""
    records = np.concatenate([elf.relocations, elf.plt_relocations])
    kind, _ = kinds_and_symbols(elf, records)
    symbols = elf.dynamic_symbols
    exported = ((symbols["info"] & 15) == STT_GNU_IFUNC) & (symbols["shndx"] != SHN_UNDEF)
    return np.concatenate([records["addend"][kind == R_X86_64_IRELATIVE], symbols["value"][exported].astype(np.int64)])


def _require_known_sections(elf: ElfFile) -> None:
    kinds = (_SHT_RELA, _SHT_REL, _SHT_RELR, _SHT_ANDROID_REL, _SHT_ANDROID_RELA)
    for section in elf.sections:
        if section.loaded and section.size and section.type in kinds and section.name not in _RELOCATION_SECTIONS:
            raise UnsupportedLibrary(
                f"relocations in section {section.name} are not understood, so pointers could be missed",
                where=elf.path,
                expected=" and ".join(_RELOCATION_SECTIONS),
            )
