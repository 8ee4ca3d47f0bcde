"""Objects of a real assembler, and damaged ones."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.link.account.marking import mark
from opsieve.runtimes.source.link.account.object_file import ObjectFile
from opsieve.runtimes.source.link.account.program_graph import read_program

ASSEMBLY = """
.section .text.f,"ax",@progbits
.globl f
f: .cfi_startproc
   .quad g - .
   .reloc ., R_X86_64_NONE, entry
   .cfi_endproc
.section .text.g,"axG",@progbits,g,comdat
.weak g
g: .quad .Ltext
.section .rodata.g,"aG",@progbits,g,comdat
ride: .quad 1
.section .rodata.str1.1,"aMS",@progbits,1
.string "unused"
.Ltext: .string "text"
.section opsieve_registrations,"aw",@progbits,unique,1
.weak entry
.hidden entry
entry: .quad data
.section opsieve_registrations,"aw",@progbits,unique,2
other: .quad 0
.section .data.x,"aw",@progbits
data: .quad missing
.section .ordered,"ao",@progbits,.text.f
.quad 3
.section .text.dead,"ax",@progbits
.quad f
.section .init_array,"aw",@init_array
.quad started
.section .text.started,"ax",@progbits
started: .quad 4
.section .debug_x,"",@progbits
.quad .text.dead
"""
MORE = """
.section .text.h,"ax",@progbits
.globl h
h: .quad g
.section .text.g,"axG",@progbits,g,comdat
.weak g
g: .quad nowhere
.section .text.strong,"ax",@progbits
.globl entry
entry: .quad 8
"""


def assembled(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.o"
    subprocess.run(["as", "--64", "-o", path, "-"], input=text, text=True, check=True)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return assembled(tmp_path_factory.mktemp("objects"), "first", ASSEMBLY)


def live_names(paths: list[Path], *roots: bytes) -> set[str]:
    graph = read_program(paths)
    live = mark(graph, roots, frames_are_roots=True)
    places = [graph.place(number) for number in live.order.tolist()]
    return {f"{part.path.stem}:{part.section_name(local).decode()}" for part, local in places}


STARTED = {"first:.init_array", "first:.text.started"}
RIDERS = {"first:.text.g", "first:.rodata.g", "first:.rodata.str1.1"}


def test_what_lives_with_what(made: Path) -> None:
    assert live_names([made]) == STARTED
    assert live_names([made], b"g") == STARTED | RIDERS
    of_f = {"first:.text.f", "first:.ordered", "first:opsieve_registrations", "first:.data.x"}
    assert live_names([made], b"f", b"nothing") == STARTED | RIDERS | of_f


def test_first_groups_and_strong_symbols_win(made: Path, tmp_path: Path) -> None:
    second = assembled(tmp_path, "second", MORE)
    assert live_names([made, second], b"h") == STARTED | RIDERS | {"second:.text.h"}
    assert live_names([second, made], b"h") == STARTED | {"second:.text.h", "second:.text.g"}
    strong = {"first:.text.f", "first:.ordered", "second:.text.strong"}
    assert live_names([made, second], b"f") == STARTED | RIDERS | strong


def test_the_same_section_name_twice(made: Path) -> None:
    found = ObjectFile(made)
    assert len(found.named(b"opsieve_registrations")) == 2
    assert not len(found.named(b"registrations"))


def test_more_sections_than_the_header_can_say(tmp_path: Path) -> None:
    text = "".join(f'.section .text.f{n},"ax",@progbits\nf{n}: .quad f{n + 1}\n' for n in range(66_000))
    path = assembled(tmp_path, "many", f'.globl f0\n{text}.section .text.end,"ax",@progbits\nf66000: .quad 0\n')
    graph = read_program([path])
    assert len(mark(graph, [b"f0"], frames_are_roots=False).order) == 66_001


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"!<arch>\n" + bytes(80), b"\x7fELF\x02\x01" + bytes(80)])
def test_what_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.o").write_bytes(content)
    with pytest.raises(InvalidFile):
        ObjectFile(tmp_path / "a.o")


def test_a_missing_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot read"):
        ObjectFile(tmp_path / "a.o")


@given(data=st.data())
def test_damage_is_an_error_of_ours_or_goes_unnoticed(made: Path, data: st.DataObject) -> None:
    content = bytearray(made.read_bytes())
    start = struct.unpack_from("<Q", content, 40)[0]
    # Headers and symbol table are what the reader believes; the rest is contents.
    at = data.draw(
        st.one_of(st.integers(0, 63), st.integers(start, len(content) - 1), st.integers(0, len(content) - 1))
    )
    content[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.one_of(st.just(len(content)), st.integers(0, len(content))))
    damaged = made.with_name("damaged.o")
    damaged.write_bytes(bytes(content[:cut]))
    try:
        mark(read_program([damaged]), [b"f"], frames_are_roots=True)
    except InvalidFile:
        return


def test_relocations_are_read_as_readelf_does(made: Path) -> None:
    found = ObjectFile(made)
    relocations = found.relocations(np.ones(len(found), bool))
    said = subprocess.run(["readelf", "-rW", made], capture_output=True, text=True, check=True).stdout
    loaded = [block for block in said.split("Relocation section ")[1:] if not block.startswith("'.rela.debug")]
    assert len(relocations.section) == sum(block.count("R_X86_64_") for block in loaded) == 8
