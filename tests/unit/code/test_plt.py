"""Where calls through the linkage table end up, against what binutils and pyelftools say of it."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from opsieve.code.elf import ElfFile
from opsieve.code.plt import PLT_SECTIONS, Plt, read_plt, unknown_entries
from tests.unit.native import LINKERS, Compiler, Names, analyse

CALLS = Path(__file__).parent / "sources" / "calls.cpp"
OPTIONS = {
    "lazy": ("-Wl,-z,lazy",),
    "now": ("-Wl,-z,now",),
    "indirect branch tracking": ("-fcf-protection=full", "-Wl,-z,lazy"),
}


@pytest.fixture(scope="module", params=[(linker, option) for linker in LINKERS for option in OPTIONS], ids=" ".join)
def elf(request: pytest.FixtureRequest, compiler: Compiler) -> ElfFile:
    linker, option = request.param
    return ElfFile(compiler.library(CALLS, flags=["-O2", *OPTIONS[option]], linker=linker))


def entries_of_objdump(library: Path) -> dict[int, str]:
    """Entry -> symbol, as the disassembler of binutils labels them: `0000000000001030 <inside@plt>:`."""
    options = [f"--section={name}" for name in PLT_SECTIONS]
    text = subprocess.run(["objdump", "-d", *options, library], capture_output=True, text=True, check=True).stdout
    labels = re.findall(r"^([0-9a-f]+) <(.+)@plt>:", text, re.MULTILINE)
    return {int(address, 16): name for address, name in labels}


def defined(library: Path) -> dict[str, int]:
    with library.open("rb") as stream:
        symbols = list(ELFFile(stream).get_section_by_name(".dynsym").iter_symbols())
    return {s.name: s["st_value"] if s["st_shndx"] != "SHN_UNDEF" else -1 for s in symbols}


def test_every_entry_leads_where_binutils_says(elf: ElfFile) -> None:
    plt = read_plt(elf)
    values = defined(elf.path)
    symbols = elf.names_of(elf.dynamic_symbols["name"][plt.symbols].astype(np.int64), ".dynstr")
    found = dict(zip(plt.entries.tolist(), zip(symbols, plt.targets.tolist(), strict=True), strict=True))
    # binutils names an entry without a symbol by the address of its resolver.
    expected = {a: n for a, n in entries_of_objdump(elf.path).items() if not n.startswith("*ABS*")}
    assert set(expected.values()) >= {"inside", "another", "outside"}
    assert {a: (n.decode(), target) for a, (n, target) in found.items() if n} == {
        address: (name, values[name]) for address, name in expected.items()
    }


@pytest.mark.parametrize("option", [*OPTIONS, "no table"])
@pytest.mark.parametrize("linker", LINKERS)
def test_callers_reach_what_they_call(compiler: Compiler, linker: str, option: str) -> None:
    flags = OPTIONS.get(option, ("-fno-plt",))
    elf = ElfFile(compiler.library(CALLS, flags=["-O2", *flags], linker=linker))
    names = Names(elf, analyse(elf))
    assert names.reachable("calls_inside") == {"calls_inside", "inside"}
    assert names.reachable("jumps_inside") == {"jumps_inside", "inside"}
    assert names.reachable("calls_another") == {"calls_another", "another"}
    assert names.reachable("calls_outside") == {"calls_outside"}
    assert {"plain", "tuned"} <= names.reachable("calls_kernel")
    assert not {"inside", "another"} & names.reachable("calls_kernel")


def test_only_the_first_byte_of_an_entry_is_one() -> None:
    plt = Plt(np.array([16, 32]), np.array([1, 2]), np.array([1000, -1]))
    addresses = np.array([0, 16, 17, 32, 33, 48, 5000])
    assert plt.index(addresses).tolist() == [-1, 0, -1, 1, -1, -1, -1]
    assert plt.resolve(addresses).tolist() == [0, 1000, 17, -1, 33, 48, 5000]


def test_a_library_may_do_without_a_table(compiler: Compiler) -> None:
    plt = read_plt(ElfFile(compiler.library("int f() { return 1; }", flags=["-nostdlib"])))
    assert len(plt.entries) == 0
    assert plt.index(np.array([5])).tolist() == [-1]
    assert plt.resolve(np.array([5])).tolist() == [5]


def test_a_call_into_the_table_that_meets_no_entry_is_noticed(elf: ElfFile) -> None:
    plt = read_plt(elf)
    first = int(plt.entries[0])
    assert unknown_entries(elf, plt, np.array([first, 5])).tolist() == []
    assert unknown_entries(elf, plt, np.array([first + 1])).tolist() == [first + 1]
    shorter = replace(plt, entries=plt.entries[1:], symbols=plt.symbols[1:], targets=plt.targets[1:])
    assert unknown_entries(elf, shorter, np.array([first])).tolist() == [first]
