from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.code.data import read_data
from opsieve.code.elf import STT_FUNC, STT_OBJECT, SYMBOL, ElfFile, Records, Section
from opsieve.code.links import Links
from opsieve.code.references import References
from tests.unit.native import LINKERS, Compiler, Names, analyse

TABLES = Path(__file__).parent / "sources" / "tables.s"
NOTHING = np.empty(0, np.int64)


@pytest.fixture(scope="module", params=LINKERS)
def names(request: pytest.FixtureRequest, compiler: Compiler) -> Names:
    elf = ElfFile(compiler.library(TABLES, flags=["-nostdlib"], linker=request.param))
    return Names(elf, analyse(elf))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("takes_first_table", {"first", "second", "third"}),
        ("reads_first_table", {"first", "second", "third"}),
        ("takes_second_table", {"fourth", "fifth"}),
        ("takes_middle_of_named", {"named_table", "first", "second", "third"}),
        ("takes_behind_named", {"fourth"}),
        ("takes_pointer_to_third", {"pointer", "sixth", "first"}),
    ],
)
def test_a_reference_reaches_all_of_its_table_and_no_other(names: Names, code: str, expected: set[str]) -> None:
    assert names.reachable(code) - {code} == expected


def test_each_slot_of_the_offset_table_is_an_object_of_its_own(compiler: Compiler) -> None:
    source = """
        extern "C" { int a(int x) { return x; } int b(int x) { return x + 1; }
        auto take_a() { return &a; } auto take_b() { return &b; } }
    """
    elf = ElfFile(compiler.library(source, flags=["-O1"]))
    names = Names(elf, analyse(elf))
    assert names.reachable("take_a") == {"take_a", "a"}
    assert names.reachable("take_b") == {"take_b", "b"}


def section(index: int, name: str, address: int, size: int) -> Section:
    return Section(index=index, name=name, type=1, flags=2, address=address, offset=0, size=size, link=0)


# Two next to each other, and a hole before the third.
SECTIONS = (section(1, ".data", 64, 64), section(2, ".got", 128, 24), section(3, ".rodata", 256, 80))


@dataclass(frozen=True)
class FakeElf:
    """Just what the data table is read from."""

    symbols: Records
    path: str = "fake.so"
    sections: tuple[Section, ...] = field(default=SECTIONS)

    def contents(self, found: Section) -> np.ndarray:
        return np.zeros(found.size, np.uint8)


def references(taken: list[int], read: list[int]) -> References:
    targets = np.array(taken + read, np.int64)
    flags = np.array([True] * len(taken) + [False] * len(read), bool)
    return References(targets, targets, flags, NOTHING, NOTHING, np.empty(0, bool), NOTHING)


address = st.integers(0, 400)
symbol = st.tuples(
    st.integers(1, 99),
    st.sampled_from([STT_OBJECT, STT_OBJECT, STT_FUNC]),
    st.just(0),
    st.sampled_from([0, 1, 2, 3, 77]),
    address | st.sampled_from([2**63, 2**64 - 1]),
    st.integers(0, 60) | st.sampled_from([2**31, 2**63, 2**64 - 1]),
)


@given(st.lists(symbol, max_size=8), st.lists(address, max_size=8), st.lists(address), st.lists(address, max_size=4))
def test_objects_tile_the_sections(
    symbols: list[tuple[int, ...]], taken: list[int], read: list[int], linked: list[int]
) -> None:
    links = Links(NOTHING, np.array(linked, np.int64))
    table = read_data(FakeElf(np.array(symbols, SYMBOL)), references(taken, read), links)  # type: ignore[arg-type]
    starts, ends = table.starts.tolist(), table.ends.tolist()
    covered = [place for low, high in zip(starts, ends, strict=True) for place in range(low, high)]
    assert covered == [place for s in SECTIONS for place in range(s.address, s.end)]
    objects = {}
    for name, kind, _, home, value, size in symbols:
        if kind == STT_OBJECT and any(s.index == home and s.address <= value < s.end for s in SECTIONS):
            objects.setdefault(value, []).append((size, name))
    for start, name in zip(starts, table.names.tolist(), strict=True):
        largest = max((size for size, _ in objects.get(start, ())), default=0)
        assert name in {n for size, n in objects.get(start, ()) if size == largest} | ({-1} - objects.keys())
        assert (name == -1) == (start not in objects)
    assert set(objects) <= set(starts)


@given(st.lists(symbol, max_size=8), st.lists(address, max_size=8), st.lists(address), st.lists(address, max_size=4))
def test_only_taken_and_aligned_addresses_divide_what_has_no_name(
    symbols: list[tuple[int, ...]], taken: list[int], read: list[int], linked: list[int]
) -> None:
    elf, links = FakeElf(np.array(symbols, SYMBOL)), Links(NOTHING, np.array(linked, np.int64))
    without = read_data(elf, references([], read), Links(NOTHING, NOTHING))  # type: ignore[arg-type]
    table = read_data(elf, references(taken, read), links)  # type: ignore[arg-type]
    extra = set(table.starts.tolist()) - set(without.starts.tolist())
    assert extra <= {place for place in (*taken, *linked) if place % 16 == 0}
    assert set(without.starts.tolist()) <= set(table.starts.tolist())


def test_a_library_without_data_has_no_objects() -> None:
    elf = FakeElf(np.empty(0, SYMBOL), sections=())
    table = read_data(elf, references([16], []), Links(NOTHING, NOTHING))  # type: ignore[arg-type]
    assert len(table) == 0
    assert table.owner(np.array([16])).tolist() == [-1]
