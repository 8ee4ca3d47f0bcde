"""The reader against pyelftools on freshly linked libraries, and on what is no library."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from opsieve.code.elf import ElfFile
from opsieve.errors import InvalidLibrary
from tests.unit.native import LINKERS, Compiler

SHAPES = Path(__file__).parent / "sources" / "shapes.cpp"


@pytest.fixture(scope="module", params=LINKERS)
def library(request: pytest.FixtureRequest, compiler: Compiler) -> Path:
    return compiler.library(SHAPES, flags=["-O2"], linker=request.param)


@pytest.fixture
def oracle(library: Path) -> Iterator[ELFFile]:
    with library.open("rb") as stream:
        yield ELFFile(stream)


def fields(entry: Any, *names: str) -> tuple[int, ...]:
    return tuple(int(entry[name]) for name in names)


def test_sections_are_those_of_pyelftools(library: Path, oracle: ELFFile) -> None:
    expected = [
        (s.name, *fields(s, "sh_flags", "sh_addr", "sh_offset", "sh_size", "sh_link")) for s in oracle.iter_sections()
    ]
    found = [(s.name, s.flags, s.address, s.offset, s.size, s.link) for s in ElfFile(library).sections]
    assert found == expected


def test_segments_are_those_of_pyelftools(library: Path, oracle: ELFFile) -> None:
    names = ("flags", "offset", "vaddr", "paddr", "filesz", "memsz", "align")
    expected = [fields(segment, *(f"p_{name}" for name in names)) for segment in oracle.iter_segments()]
    assert [fields(segment, *names) for segment in ElfFile(library).segments] == expected


@pytest.mark.parametrize(("table", "strings"), [(".symtab", ".strtab"), (".dynsym", ".dynstr")])
def test_symbols_are_those_of_pyelftools(library: Path, oracle: ELFFile, table: str, strings: str) -> None:
    elf = ElfFile(library)
    symbols = elf.symbols if table == ".symtab" else elf.dynamic_symbols
    names = elf.names_of(symbols["name"].astype("int64"), strings)
    found = [(name.decode(), *fields(s, "value", "size")) for name, s in zip(names, symbols, strict=True)]
    # pyelftools gives a nameless section symbol the name of its section.
    expected = [
        ("" if s["st_info"]["type"] == "STT_SECTION" else s.name, *fields(s, "st_value", "st_size"))
        for s in oracle.get_section_by_name(table).iter_symbols()
    ]
    assert len(found) > 5
    assert found == expected
    assert [elf.name(strings, int(s["name"])) for s in symbols] == names


@pytest.mark.parametrize("table", [".rela.dyn", ".rela.plt"])
def test_relocations_are_those_of_pyelftools(library: Path, oracle: ELFFile, table: str) -> None:
    elf = ElfFile(library)
    relocations = elf.relocations if table == ".rela.dyn" else elf.plt_relocations
    expected = [
        fields(r, "r_offset", "r_info", "r_addend") for r in oracle.get_section_by_name(table).iter_relocations()
    ]
    assert [fields(r, "offset", "info", "addend") for r in relocations] == expected
    assert len(expected) > 2


def test_the_build_id_is_that_of_pyelftools(library: Path, oracle: ELFFile) -> None:
    notes = oracle.get_section_by_name(".note.gnu.build-id").iter_notes()
    assert ElfFile(library).build_id == next(notes)["n_desc"]


def test_a_library_linked_without_build_id_has_none(compiler: Compiler) -> None:
    library = compiler.library("int f() { return 1; }", flags=["-Wl,--build-id=none"])
    assert ElfFile(library).build_id is None


def test_texts_are_read_by_address(library: Path) -> None:
    elf = ElfFile(library)
    constants = elf.section(".rodata")
    raw = elf.contents(constants).tobytes()
    at = raw.index(b"6Square\0")
    assert elf.text_at(constants.address + at) == b"6Square"
    assert elf.text_at(constants.address + at + 1) == b"Square"
    assert elf.offset_of(constants.address) == constants.offset
    bss = elf.section(".bss")
    assert elf.text_at(bss.end - 1) is None
    assert elf.text_at(0x7FFF_FFFF_0000) is None
    assert elf.text_at(-1) is None


def test_sections_without_bytes_in_the_file_are_empty(library: Path) -> None:
    elf = ElfFile(library)
    assert elf.section(".bss").size > 0
    assert len(elf.contents(elf.section(".bss"))) == 0


def test_what_is_missing_is_said(library: Path) -> None:
    elf = ElfFile(library)
    assert elf.find_section(".nowhere") is None
    with pytest.raises(InvalidLibrary, match=r"no section \.nowhere"):
        elf.section(".nowhere")
    assert len(elf.records(".nowhere", elf.symbols.dtype)) == 0


def _put(offset: int, layout: str, *values: int | bytes) -> Callable[[bytearray], None]:
    return lambda raw: struct.pack_into(layout, raw, offset, *values)


def _cut(size: int) -> Callable[[bytearray], None]:
    return lambda raw: raw.__delitem__(slice(size, None))


def _section_field(name: str, field: int, value: int) -> Callable[[bytearray], None]:
    """Overwrite an 8-byte field (its offset in the section header) of the section called `name`."""

    def change(raw: bytearray) -> None:
        start, size, count, strings = (
            *struct.unpack_from("<Q", raw, 40),
            *struct.unpack_from("<HHH", raw, 58),
        )
        names = struct.unpack_from("<Q", raw, start + size * strings + 24)[0]
        for number in range(count):
            at = start + size * number
            text = names + struct.unpack_from("<I", raw, at)[0]
            if raw[text : raw.index(0, text)] == name.encode():
                struct.pack_into("<Q", raw, at + field, value)
                return
        raise AssertionError(name)

    return change


MALFORMED = {
    "empty": (_cut(0), "cannot read the file"),
    "shorter than a header": (_cut(63), "no ELF file"),
    "another format": (_put(0, "4s", b"MZ\0\0"), "no ELF file"),
    "32 bits": (_put(4, "B", 1), "64-bit little-endian"),
    "big-endian": (_put(5, "B", 2), "64-bit little-endian"),
    "an executable": (_put(16, "<H", 2), "ELF type 2"),
    "cut in the middle": (_cut(9000), "does not lie in the file"),
    "section headers far away": (_put(40, "<Q", 2**64 - 1), "does not lie in the file"),
    "segment headers far away": (_put(32, "<Q", 2**63), "does not lie in the file"),
    "section headers of another size": (_put(58, "<H", 63), "does not lie in the file"),
    "too many section headers": (_put(60, "<H", 65535), "does not lie in the file"),
    "no section with the names": (_put(62, "<H", 999), "section 999"),
    "a section behind the end": (_section_field(".rodata", 32, 2**63), "behind the end of the file"),
    "a section that starts too far": (_section_field(".rodata", 24, 2**64 - 8), "behind the end of the file"),
    "names behind the end": (_section_field(".shstrtab", 24, 2**63), "has no end"),
    "a section above all addresses": (_section_field(".bss", 16, 2**63), "no address"),
    "a section of impossible size": (_section_field(".bss", 32, 2**62), "no address"),
    "code that the file does not hold": (_section_field(".text", 4, 8 + (6 << 32)), "without its contents"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_refused_with_the_place(compiler: Compiler, tmp_path: Path, case: str) -> None:
    change, message = MALFORMED[case]
    raw = bytearray(compiler.library(SHAPES, flags=["-O2"]).read_bytes())
    change(raw)
    broken = tmp_path / "broken.so"
    broken.write_bytes(raw)
    with pytest.raises(InvalidLibrary, match=message) as fault:
        ElfFile(broken)
    assert str(broken) in (fault.value.where or "")


def test_names_must_lie_in_their_table(compiler: Compiler) -> None:
    elf = ElfFile(compiler.library(SHAPES, flags=["-O2"]))
    size = elf.section(".strtab").size
    with pytest.raises(InvalidLibrary, match="has no end"):
        elf.names_of(np.array([1, size]))
    with pytest.raises(InvalidLibrary, match="has no end"):
        elf.name(".strtab", size)
    assert elf.names_of(np.array([-1, size - 1])) == [b"", b""]
    longest = max(elf.names_of(elf.symbols["name"].astype(np.int64)), key=len)
    at = elf.contents(elf.section(".strtab")).tobytes().index(longest)
    with pytest.raises(InvalidLibrary, match="longer than their table"):
        elf.names_of(np.full(8 * size // len(longest) + 1, at))


def test_what_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing.so"):
        with pytest.raises(InvalidLibrary, match="cannot read the file"):
            ElfFile(path)
