from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import InvalidLibrary
from opsieve.installed import TorchInstall
from opsieve.runtimes.wheel.roots import export_roots, loader_roots, neighbours
from tests.unit.native import LINKERS, Compiler, Names, analyse

SOURCE = """
extern "C" {
#define LEAF(name) __attribute__((noinline)) int name(int x) { asm volatile(""); return x + __LINE__; }
LEAF(imported)
LEAF(not_imported)
LEAF(defined_by_both)
int exported_data = 7;
static LEAF(constructed)
static LEAF(destroyed)
static LEAF(begun)
static LEAF(fallback_choice)
static int counter;
__attribute__((constructor)) static void construct() { counter += constructed(1); }
__attribute__((destructor)) static void destroy() { counter += destroyed(1); }
void begin() { counter += begun(1); }
static int (*choose())(int) { return fallback_choice; }
int chosen(int) __attribute__((ifunc("choose")));
}
"""
CONSUMER = """
extern "C" {
int imported(int);
extern int exported_data;
int use(int x) { return imported(x) + exported_data; }
int defined_by_both(int x) { return x; }
}
"""


@pytest.fixture(scope="module", params=LINKERS)
def names(request: pytest.FixtureRequest, compiler: Compiler) -> Names:
    elf = ElfFile(compiler.library(SOURCE, flags=["-O1", "-Wl,-init=begin"], linker=request.param))
    return Names(elf, analyse(elf))


def kept(names: Names, roots: np.ndarray) -> set[str]:
    flags = names.graph.reachable(roots)
    return {name for name, flag in zip(names.all(), flags.tolist(), strict=True) if flag}


def test_what_the_loader_runs_stays(names: Names) -> None:
    found = kept(names, loader_roots(names.elf, names.graph))
    assert {"construct", "constructed", "destroy", "destroyed", "begin", "begun", "choose", "fallback_choice"} <= found
    assert not found & {"imported", "not_imported", "defined_by_both", "exported_data"}


def test_what_another_library_names_stays(names: Names, compiler: Compiler) -> None:
    consumer = compiler.library(CONSUMER)
    found = kept(names, export_roots(names.elf, names.graph, [consumer]))
    assert {"imported", "defined_by_both", "exported_data"} <= found
    assert "not_imported" not in found


def test_without_other_libraries_no_export_is_needed(names: Names) -> None:
    assert len(export_roots(names.elf, names.graph, [])) == 0


def test_a_program_may_be_the_user(names: Names, compiler: Compiler, tmp_path: Path) -> None:
    source = tmp_path / "main.cpp"
    source.write_text('extern "C" int imported(int); int main() { return imported(1); }')
    import subprocess

    program = tmp_path / "main"
    subprocess.run(["g++", "-no-pie", source, names.elf.path, "-o", program], check=True)
    found = kept(names, export_roots(names.elf, names.graph, [program]))
    assert "imported" in found
    assert not found & {"not_imported", "exported_data"}


def test_a_user_that_cannot_be_read_is_a_fault(names: Names, tmp_path: Path) -> None:
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"not ELF at all")
    with pytest.raises(InvalidLibrary, match="no ELF file"):
        export_roots(names.elf, names.graph, [broken])


def test_only_libraries_that_pytorch_needs_look_symbols_up_in_it(compiler: Compiler, tmp_path: Path) -> None:
    package = tmp_path / "torch"
    (package / "lib").mkdir(parents=True)
    system = tmp_path / "system"
    system.mkdir()
    deep = compiler.library("int deep() { return 1; }", flags=["-Wl,-soname,libdeep.so.1"])
    needed = compiler.library("int deep(); int needed() { return deep(); }", flags=[deep, "-Wl,-soname,libneeded.so.6"])
    user = compiler.library("int needed(); int user() { return needed(); }", flags=[needed])
    other = compiler.library("int other() { return 1; }")
    # A process maps the file that the soname links to.
    for library, name in ((deep, "libdeep.so.1"), (needed, "libneeded.so.6.0.30"), (other, "libother.so")):
        (system / name).write_bytes(library.read_bytes())
    (package / "lib" / "libtorch_cpu.so").write_bytes(user.read_bytes())
    loaded = [*system.iterdir(), package / "lib" / "libtorch_cpu.so"]
    install = TorchInstall(Path("python"), package, "2.13.0")
    assert {path.name for path in neighbours(install, loaded)} == {
        "libtorch_cpu.so",
        "libneeded.so.6.0.30",
        "libdeep.so.1",
    }
