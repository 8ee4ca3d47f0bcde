"""Reading the symbols of objects, and refusing broken ones."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.index import read_defined, read_object

SOURCE = """
extern "C" {
int strong() { return 1; }
static int local() { return 2; }
__attribute__((weak)) int weak() { return local(); }
extern int wanted(int);
extern int perhaps __attribute__((weak));
int uninitialised;
int user() { return wanted(uninitialised) + (&perhaps ? 1 : 0) + weak(); }
}
inline int copied() { static int once = wanted(1); return once; }
int other() { return copied(); }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("object")
    (folder / "a.cpp").write_text(SOURCE)
    subprocess.run(["g++", "-ffunction-sections", "-c", folder / "a.cpp", "-o", folder / "a.o"], check=True)
    return folder / "a.o"


def nm(path: Path, *flags: str) -> set[str]:
    listed = subprocess.run(["nm", "-P", "-g", *flags, path], check=True, capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if "U" in flags or line.split()[1] not in "w"}


def test_the_same_as_nm_says(made: Path) -> None:
    assert read_defined(made) == nm(made, "--defined-only")
    assert read_object(made).undefined == nm(made, "--undefined-only")


def test_strong_weak_and_undefined(made: Path) -> None:
    symbols = read_object(made)
    assert symbols.strong >= {"strong", "user", "uninitialised", "_Z5otherv"}
    assert symbols.weak >= {"weak", "_Z6copiedv"}
    assert "wanted" in symbols.undefined
    assert not {"perhaps", "local", "_ZL5localv", ""} & (symbols.defined | symbols.undefined)


def test_more_sections_than_the_header_can_say(tmp_path: Path) -> None:
    """Extended numbering: `e_shnum` is 0 and the first section's size holds the number."""
    count = 66_000
    lines = [f'.section .text.f{number},"ax"\n.globl f{number}\nf{number}: ret' for number in range(count)]
    (tmp_path / "a.s").write_text("\n".join(lines) + "\n")
    subprocess.run(["as", tmp_path / "a.s", "-o", tmp_path / "a.o"], check=True)
    assert (tmp_path / "a.o").read_bytes()[60:62] == b"\0\0"
    assert len(read_defined(tmp_path / "a.o")) == count


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF\x02\x01", b"BC\xc0\xde" + b"\0" * 100, b"\x7fELF\x01\x01" + b"\0" * 100]
)
def test_what_is_no_object_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.o").write_bytes(content)
    with pytest.raises(InvalidFile):
        read_object(tmp_path / "a.o")


def test_a_program_is_refused() -> None:
    with pytest.raises(InvalidFile, match="no object"):
        read_object(Path("/proc/self/exe").resolve())


def test_a_missing_object_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="cannot read the object"):
        read_object(tmp_path / "none.o")


@settings(max_examples=200, deadline=None)
@given(at=st.integers(0, 10_000), value=st.binary(min_size=1, max_size=8))
def test_damage_is_an_error_of_ours_or_other_names(
    made: Path, tmp_path_factory: pytest.TempPathFactory, at: int, value: bytes
) -> None:
    content = bytearray(made.read_bytes())
    at %= len(content)
    content[at : at + len(value)] = value
    damaged = tmp_path_factory.getbasetemp() / "damaged.o"
    damaged.write_bytes(content)
    try:
        symbols = read_object(damaged)
    except InvalidFile:
        return
    assert isinstance(symbols.defined, frozenset)


def test_a_string_table_out_of_the_file_is_refused(made: Path, tmp_path: Path) -> None:
    content = bytearray(made.read_bytes())
    struct.pack_into("<Q", content, 40, len(content) - 8)
    (tmp_path / "a.o").write_bytes(content)
    with pytest.raises(InvalidFile, match="does not lie in the file"):
        read_object(tmp_path / "a.o")
