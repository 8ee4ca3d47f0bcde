from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from opsieve.code.elf import ElfFile
from opsieve.code.links import read_links
from opsieve.errors import InvalidLibrary, OpsieveError, UnsupportedLibrary
from tests.unit.native import LINKERS, Compiler

SOURCES = Path(__file__).parent / "sources"
THREAD_LOCAL = (16, 17, 18, 36)


def expected_links(library: Path) -> list[tuple[int, int]]:
    """(slot, target) of every relocation that points into the library, as pyelftools reads them."""
    with library.open("rb") as stream:
        elf = ELFFile(stream)
        symbols = elf.get_section_by_name(".dynsym")
        thread_data = elf.get_section_by_name(".tdata")
        found = []
        for name in (".rela.dyn", ".rela.plt"):
            section = elf.get_section_by_name(name)
            for entry in section.iter_relocations() if section else ():
                symbol = symbols.get_symbol(entry["r_info_sym"])
                kind, slot = entry["r_info_type"], entry["r_offset"]
                if kind in (8, 37):
                    found.append((slot, entry["r_addend"]))
                elif kind in (1, 6, 7) and symbol["st_shndx"] != "SHN_UNDEF":
                    found.append((slot, symbol["st_value"] + (entry["r_addend"] if kind == 1 else 0)))
                elif kind in THREAD_LOCAL and thread_data:
                    found.append((slot, thread_data["sh_addr"]))
        return sorted(found)


@pytest.mark.parametrize("linker", LINKERS)
@pytest.mark.parametrize("source", ["shapes.cpp", "calls.cpp"])
def test_links_are_what_the_relocations_say(compiler: Compiler, linker: str, source: str) -> None:
    library = compiler.library(SOURCES / source, flags=["-O2"], linker=linker)
    links = read_links(ElfFile(library))
    assert list(zip(links.slots.tolist(), links.targets.tolist(), strict=True)) == expected_links(library)
    assert len(links.slots) > 5


def test_the_addend_counts_for_pointers_and_not_for_slots(compiler: Compiler) -> None:
    source = "extern int numbers[4]; int* pointer = numbers + 3; int numbers[4] = {1}; int f() { return numbers[1]; }"
    elf = ElfFile(compiler.library(source))
    links = read_links(elf)
    with elf.path.open("rb") as stream:
        table = ELFFile(stream).get_section_by_name(".dynsym")
        pointer, numbers = (table.get_symbol_by_name(name)[0]["st_value"] for name in ("pointer", "numbers"))
    assert links.targets[links.slots == pointer].tolist() == [numbers + 12]
    assert numbers in links.targets.tolist()


@pytest.mark.parametrize(
    ("linker", "option", "section"),
    [("lld", "--pack-dyn-relocs=relr", ".relr.dyn"), ("bfd", "-z,nocombreloc", ".rela.")],
)
def test_relocations_elsewhere_are_refused(compiler: Compiler, linker: str, option: str, section: str) -> None:
    library = compiler.library(SOURCES / "shapes.cpp", flags=["-O2", f"-Wl,{option}"], linker=linker)
    with pytest.raises(UnsupportedLibrary, match=section):
        read_links(ElfFile(library))


@pytest.mark.parametrize(
    ("info", "fault", "message"),
    [
        (24, UnsupportedLibrary, "type 24 are not understood"),
        (1 | 9999 << 32, InvalidLibrary, "symbol that is not there"),
    ],
)
def test_unknown_kinds_and_symbols_are_refused(
    compiler: Compiler, tmp_path: Path, info: int, fault: type[OpsieveError], message: str
) -> None:
    library = compiler.library(SOURCES / "shapes.cpp", flags=["-O2"])
    raw = bytearray(library.read_bytes())
    struct.pack_into("<Q", raw, ElfFile(library).section(".rela.dyn").offset + 8, info)
    broken = tmp_path / "broken.so"
    broken.write_bytes(raw)
    with pytest.raises(fault, match=message):
        read_links(ElfFile(broken))


def test_a_library_without_relocations_has_no_links(compiler: Compiler) -> None:
    links = read_links(ElfFile(compiler.library("int f() { return 1; }", flags=["-nostdlib"])))
    assert (links.slots.tolist(), links.targets.tolist()) == ([], [])
    assert links.slots.dtype == np.int64
