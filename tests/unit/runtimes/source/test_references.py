"""The graph of all objects forecasts what a linker pulls in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.references import Forecast, References

from .small_workspace import needs_compiler

pytestmark = needs_compiler

SOURCES = {
    "main": "int call(); int main() { return call(); }",
    # As a dispatch refers to the entry of its operator's registration, and that to a kernel.
    "call": 'extern int* const entry; int call() { asm(".reloc ., BFD_RELOC_NONE, entry"); return 0; }',
    "entry": 'extern "C" { int kernel(); __attribute__((weak)) extern int (*const entry)() = kernel; }',
    "kernel": 'extern "C" int puts(const char*); extern "C" int kernel() { return puts(""); }',
    "start": "int late(); int value = late(); int started() { return value; }",
    "late": "int late() { return 5; }",
    "weakly": "extern int maybe() __attribute__((weak)); int weakly() { return maybe ? maybe() : 0; }",
    "maybe": "int maybe() { return 1; }",
    "inline1": "__attribute__((noinline)) inline int both() { static int x; return ++x; } int one() { return both(); }",
    "inline2": "__attribute__((noinline)) inline int both() { static int x; return ++x; } int two() { return both(); }",
    "elsewhere": "int both(); int three() { return both(); }",
}


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("objects")
    for name, text in SOURCES.items():
        (root / f"{name}.cpp").write_text(text)
    sources = [f"{name}.cpp" for name in SOURCES]
    subprocess.run(["g++", "-O1", "-ffunction-sections", "-fdata-sections", "-c", *sources], cwd=root, check=True)
    return {name: root / f"{name}.o" for name in SOURCES}


@pytest.fixture(scope="module")
def references(objects: dict[str, Path]) -> References:
    return References.build(objects, ("main", "entry"))


def test_through_a_relocation_that_does_nothing(references: References) -> None:
    forecast = references.forecast(["main"], ["main"])
    assert forecast == Forecast(("main", "call", "entry", "kernel"), frozenset({"puts"}))


def test_an_object_alone_brings_no_more_than_its_initialisers(references: References) -> None:
    assert references.forecast(["main", "kernel"], []).sources == ("main", "kernel")
    assert references.forecast(["start"], []).sources == ("start", "late")


def test_what_is_replaced_brings_nothing(references: References) -> None:
    forecast = references.forecast(["main"], ["main"], ["entry"])
    assert forecast == Forecast(("main", "call"), frozenset())


def test_a_weak_reference_brings_nothing(references: References) -> None:
    assert references.forecast(["weakly"], ["_Z6weaklyv"]).sources == ("weakly",)


def test_every_object_has_its_own_inline_functions(references: References) -> None:
    node = references.symbols["_Z4bothv"]
    assert references.definer("_Z4bothv") == "inline1"
    assert references.first[references.objects.index("inline1")] < node
    assert references.definer("_Z3onev") is None  # nobody wants it


def test_what_is_saved_is_loaded(references: References, tmp_path: Path) -> None:
    references.save(tmp_path / "saved")
    loaded = References.load(tmp_path / "saved")
    assert loaded.symbols == references.symbols
    assert loaded.forecast(["main"], ["main"]) == references.forecast(["main"], ["main"])


@pytest.mark.parametrize("name", ["first", "starts", "targets", "names"])
@pytest.mark.parametrize("how", ["gone", "empty", "short", "numbers", "pickled"])
def test_damage_is_noticed(references: References, tmp_path: Path, name: str, how: str) -> None:
    references.save(tmp_path / "saved")
    path = next((tmp_path / "saved").glob(f"{name}.*"))
    if how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "short":
        path.write_bytes(path.read_bytes()[:-9])
    elif how == "pickled":
        with path.open("wb") as file:
            np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    else:
        with path.open("wb") as file:
            np.save(file, np.array([0, 1 << 30], np.int64))
    with pytest.raises(InvalidFile):
        References.load(tmp_path / "saved")


def test_nothing_to_read(tmp_path: Path) -> None:
    empty = References.build({})
    assert empty.forecast([], ["main"]) == Forecast((), frozenset())
    empty.save(tmp_path / "saved")
    assert References.load(tmp_path / "saved").objects == ()


def test_what_is_no_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.o").write_bytes(b"no object")
    with pytest.raises(InvalidFile):
        References.build({"x": tmp_path / "x.o"})
