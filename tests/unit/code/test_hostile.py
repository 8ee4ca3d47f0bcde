"""Damaged libraries: whatever the bytes, either an analysis or a fault that says so, within bounded memory."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsieve.code.elf import PROGRAM_HEADER, RELOCATION, SECTION_HEADER, SYMBOL, ElfFile
from opsieve.errors import InvalidLibrary, UnsupportedLibrary
from tests.unit.native import Compiler, analyse

SOURCES = Path(__file__).parent / "sources"
MEMORY = 64 << 20
EDGES = [0, 1, 2**31, 2**32 - 1, 2**47 - 1, 2**47, 2**63 - 1, 2**63, 2**64 - 1]


@pytest.fixture
def library(compiler: Compiler) -> Path:
    return compiler.library(SOURCES / "shapes.cpp", flags=["-O2"], linker="gold")


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    return tmp_path / "broken.so"


def judge(broken: Path, raw: bytes | bytearray) -> None:
    """Analyse what `raw` holds. Only the two faults of libraries may come out, and not at the price of all memory."""
    broken.write_bytes(raw)
    place = str(broken)
    tracemalloc.start()
    try:
        graph = analyse(ElfFile(broken))
        assert len(graph.first_edge) == graph.node_count + 1
    except (InvalidLibrary, UnsupportedLibrary) as fault:
        place = str(fault)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert str(broken) in place
    assert peak < MEMORY


def tables(library: Path) -> list[tuple[int, int, np.dtype]]:
    """(offset, records, layout) of all tables whose numbers the analysis believes."""
    elf = ElfFile(library)
    found = [
        (int(elf.header["shoff"]), len(elf.sections), SECTION_HEADER),
        (int(elf.header["phoff"]), len(elf.segments), PROGRAM_HEADER),
    ]
    for name, layout in (
        (".symtab", SYMBOL),
        (".dynsym", SYMBOL),
        (".rela.dyn", RELOCATION),
        (".rela.plt", RELOCATION),
    ):
        section = elf.section(name)
        found.append((section.offset, section.size // layout.itemsize, layout))
    return found


common = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@common
@given(data=st.data())
def test_numbers_that_lie(library: Path, broken: Path, data: st.DataObject) -> None:
    raw = bytearray(library.read_bytes())
    choices = tables(library)
    for _ in range(data.draw(st.integers(1, 4))):
        offset, count, layout = data.draw(st.sampled_from(choices))
        at = offset + data.draw(st.integers(0, count - 1)) * layout.itemsize
        name = data.draw(st.sampled_from(layout.names))
        field, shift = layout.fields[name][:2]
        value = data.draw(st.sampled_from(EDGES) | st.integers(0, 2**64 - 1) | st.integers(0, 40_000))
        size = field.itemsize
        raw[at + shift : at + shift + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    judge(broken, raw)


@common
@given(data=st.data())
def test_bytes_that_changed_anywhere(library: Path, broken: Path, data: st.DataObject) -> None:
    raw = bytearray(library.read_bytes())
    for position, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(raw) - 1), st.integers(0, 255)), min_size=1, max_size=20)
    ):
        raw[position] = value
    judge(broken, raw)


@common
@given(data=st.data())
def test_code_that_is_none(library: Path, broken: Path, data: st.DataObject) -> None:
    raw = bytearray(library.read_bytes())
    elf = ElfFile(library)
    section = elf.section(data.draw(st.sampled_from([".text", ".plt"])))
    noise = data.draw(st.binary(min_size=1, max_size=min(section.size, 200)))
    at = section.offset + data.draw(st.integers(0, section.size - len(noise)))
    raw[at : at + len(noise)] = noise
    judge(broken, raw)


@common
@given(data=st.data())
def test_files_that_end_early(library: Path, broken: Path, data: st.DataObject) -> None:
    raw = library.read_bytes()
    judge(broken, raw[: data.draw(st.integers(1, len(raw)))])


def test_sections_that_share_their_bytes_are_refused(library: Path, broken: Path) -> None:
    """Or a small file could claim thousands of large tables."""
    raw = bytearray(library.read_bytes())
    offset, count, layout = tables(library)[0]
    headers = np.frombuffer(raw, layout, count, offset)
    headers["offset"][1:-1], headers["size"][1:-1] = 0, len(raw) // 2
    headers["type"] = np.where(headers["type"] == 8, 1, headers["type"])
    broken.write_bytes(raw)
    with pytest.raises(InvalidLibrary, match="share bytes"):
        ElfFile(broken)
