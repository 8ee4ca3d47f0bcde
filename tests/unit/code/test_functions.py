from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.code.elf import STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT, SYMBOL, ElfFile, Records, Section
from opsieve.code.functions import SMALLEST_GAP, FunctionTable, read_functions
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from tests.unit.native import Compiler, asm

LABELS = Path(__file__).parent / "sources" / "labels.s"
BARE = ("-nostdlib", "-Wl,-z,noseparate-code")


def names(elf: ElfFile, table: FunctionTable) -> list[str]:
    return [elf.name(".strtab", offset).decode() if offset >= 0 else "" for offset in table.names.tolist()]


def test_starts_gaps_and_labels_of_hand_written_code(compiler: Compiler) -> None:
    elf = ElfFile(compiler.library(LABELS, flags=BARE))
    text = elf.section(".text")
    table = read_functions(elf)
    expected = [
        (0, ""),
        (16, "sized"),
        (47, "small"),
        (48, ""),
        (96, "unsized"),
        (136, "behind_gap"),
        (144, "nested_outer"),
        (160, "nested_inner"),
        (208, ""),
        (224, "last"),
        (240, ""),
    ]
    found = names(elf, table)
    # Which of two names with the same address and size is taken depends on the order of the symbol table.
    assert found[1] in ("sized", "alias_long")
    found[1] = "sized"
    assert list(zip((table.starts - text.address).tolist(), found, strict=True)) == expected
    assert (table.ends - text.address).tolist() == [start for start, _ in expected[1:]] + [256]
    assert (table.entries - text.address).tolist() == [0, 16, 47, 48, 56, 80, 96, 136, 144, 160, 208, 224, 240]


def test_a_stripped_library_is_refused(compiler: Compiler) -> None:
    elf = ElfFile(compiler.library(LABELS, flags=(*BARE, "-Wl,--strip-all")))
    with pytest.raises(UnsupportedLibrary, match="no symbol table") as fault:
        read_functions(elf)
    assert fault.value.remedy


def test_code_in_a_section_of_its_own_is_refused(compiler: Compiler) -> None:
    source = '__attribute__((section(".hidden_code"))) int f() { return 1; } int g() { return f(); }'
    with pytest.raises(UnsupportedLibrary, match=r"\.hidden_code"):
        read_functions(ElfFile(compiler.library(source)))


def test_a_library_without_functions_is_refused(compiler: Compiler) -> None:
    only_labels = compiler.library(asm(".text\nlabel: ret\n"), flags=["-nostdlib"])
    with pytest.raises(UnsupportedLibrary, match="no code of its own"):
        read_functions(ElfFile(only_labels))
    only_data = compiler.library("int value = 1;", flags=["-nostdlib"])
    with pytest.raises(InvalidLibrary, match=r"no section \.text"):
        read_functions(ElfFile(only_data))


LOW, SIZE = 0x1000, 256
TEXT = Section(index=3, name=".text", type=1, flags=6, address=LOW, offset=0, size=SIZE, link=0)


@dataclass(frozen=True)
class FakeElf:
    """Just what the function table is read from."""

    symbols: Records
    path: str = "fake.so"
    sections: tuple[Section, ...] = (TEXT,)

    def section(self, name: str) -> Section:
        assert name == ".text"
        return TEXT


FUNCTION = (7, STT_FUNC, 0, TEXT.index, LOW + 40, 24)
symbol = st.tuples(
    st.integers(1, 99),
    st.sampled_from([STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT]),
    st.just(0),
    st.sampled_from([0, TEXT.index, 4]),
    st.integers(LOW - 8, LOW + SIZE + 8) | st.sampled_from([0, 2**63, 2**64 - 1]),
    st.integers(0, 80) | st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64 - 1]),
)

symbols_of_a_library = st.lists(symbol, max_size=12).map(lambda found: [*found, FUNCTION])


@given(symbols_of_a_library)
def test_functions_tile_the_text_whatever_the_symbols_say(symbols: list[tuple[int, ...]]) -> None:
    table = read_functions(FakeElf(np.array(symbols, SYMBOL)))  # type: ignore[arg-type]
    inside = [s for s in symbols if s[3] == TEXT.index and LOW <= s[4] < LOW + SIZE]
    functions = {s[4] for s in inside if s[1] in (STT_FUNC, STT_GNU_IFUNC)}
    starts = table.starts.tolist()
    assert starts == sorted(set(starts))
    assert table.ends.tolist() == [*starts[1:], LOW + SIZE]
    assert functions <= set(starts)
    assert starts[0] < LOW + SMALLEST_GAP
    assert set(starts) <= set(table.entries.tolist()) <= set(range(LOW, LOW + SIZE))
    assert set(table.entries.tolist()) - set(starts) <= {s[4] for s in inside if s[1] == STT_NOTYPE}
    for start, name in zip(starts, table.names.tolist(), strict=True):
        same = [s for s in inside if s[4] == start and s[1] in (STT_FUNC, STT_GNU_IFUNC)]
        assert (name in {s[0] for s in same}) if same else name == -1


@given(symbols_of_a_library)
def test_no_unowned_stretch_is_longer_than_padding(symbols: list[tuple[int, ...]]) -> None:
    """Behind the end of everything that started before, the next start comes within the padding."""
    table = read_functions(FakeElf(np.array(symbols, SYMBOL)))  # type: ignore[arg-type]
    sizes: dict[int, int] = {}
    for _, kind, _, section, value, size in symbols:
        if section == TEXT.index and LOW <= value < LOW + SIZE and kind in (STT_FUNC, STT_GNU_IFUNC):
            sizes[value] = max(sizes.get(value, 0), size)
    covered = LOW
    for start, following in zip(table.starts.tolist(), table.ends.tolist(), strict=True):
        # A gap, and a function whose size nobody knows, reach to the next start.
        covered = max(covered, start + sizes[start] if sizes.get(start) else following)
        assert following - covered < SMALLEST_GAP


@given(symbols_of_a_library, st.lists(st.integers(LOW - 9, LOW + SIZE + 9), max_size=9))
def test_the_owner_is_the_function_that_holds_the_address(symbols: list[tuple[int, ...]], addresses: list[int]) -> None:
    table = read_functions(FakeElf(np.array(symbols, SYMBOL)))  # type: ignore[arg-type]
    bounds = list(zip(table.starts.tolist(), table.ends.tolist(), strict=True))
    expected = [next((i for i, (low, high) in enumerate(bounds) if low <= a < high), -1) for a in addresses]
    assert table.owner(np.array(addresses, np.int64)).tolist() == expected
