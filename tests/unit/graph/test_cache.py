from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import InvalidFile, InvalidLibrary, UnsupportedLibrary
from opsieve.graph import cache
from opsieve.graph.cache import FORMAT, KEPT_ENTRIES, cache_folder, cached_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.progress import SILENT, Progress
from tests.unit.graph.test_store import assert_equal
from tests.unit.native import Compiler, fake_torch, op_graph_of


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPSIEVE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "graphs"


@pytest.fixture
def built() -> Iterator[list[Path]]:
    """The libraries that were analysed, in order."""
    libraries: list[Path] = []

    def build(elf: ElfFile, progress: Progress = SILENT) -> OpGraph:
        libraries.append(elf.path)
        return op_graph_of(elf)

    with patch.object(cache, "build_op_graph", build):
        yield libraries


@pytest.fixture
def library(compiler: Compiler) -> Path:
    return fake_torch(compiler).path


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_dir())


def with_build_id(library: Path, number: int, folder: Path) -> Path:
    """A copy that the cache takes for another library."""
    elf = ElfFile(library)
    raw = bytearray(library.read_bytes())
    note = elf.section(".note.gnu.build-id")
    raw[note.offset + 16] = number
    copy = folder / f"{number}.so"
    copy.write_bytes(raw)
    return copy


def test_a_library_is_analysed_once(library: Path, folder: Path, built: list[Path]) -> None:
    first = cached_op_graph(library)
    second = cached_op_graph(library)
    assert built == [library]
    assert entries(folder) == [f"{ElfFile(library).build_id}-{FORMAT}"]
    assert_equal(second, first)


def test_a_moved_library_is_the_same_library(library: Path, folder: Path, built: list[Path], tmp_path: Path) -> None:
    cached_op_graph(library)
    moved = tmp_path / "moved.so"
    moved.write_bytes(library.read_bytes())
    cached_op_graph(moved)
    assert built == [library]


def test_another_build_id_is_another_library(library: Path, folder: Path, built: list[Path], tmp_path: Path) -> None:
    other = with_build_id(library, 7, tmp_path)
    cached_op_graph(library)
    cached_op_graph(other)
    assert built == [library, other]


def test_another_format_is_built_again(
    library: Path, folder: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached_op_graph(library)
    monkeypatch.setattr(cache, "FORMAT", FORMAT + 1)
    cached_op_graph(library)
    assert built == [library, library]


def test_a_stripped_copy_of_an_analysed_library_is_refused(
    library: Path, folder: Path, built: list[Path], tmp_path: Path
) -> None:
    """It has the same build id, and what is read of it later would be missing."""
    cached_op_graph(library)
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "--strip-all", library, "-o", stripped], check=True)
    assert ElfFile(stripped).build_id == ElfFile(library).build_id
    with pytest.raises(UnsupportedLibrary, match="no symbol table"):
        cached_op_graph(stripped)


def test_rebuild_asks_for_a_fresh_analysis(library: Path, folder: Path, built: list[Path]) -> None:
    cached_op_graph(library)
    cached_op_graph(library, rebuild=True)
    cached_op_graph(library)
    assert built == [library, library]
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("damage", ["file gone", "zeros", "empty folder", "a file in its place"])
def test_a_damaged_entry_is_built_again(library: Path, folder: Path, built: list[Path], damage: str) -> None:
    expected = cached_op_graph(library)
    (entry,) = (path for path in folder.iterdir() if path.is_dir())
    file = entry / "targets.npy"
    if damage == "file gone":
        file.unlink()
    elif damage == "zeros":
        file.write_bytes(bytes(file.stat().st_size))
    else:
        for path in entry.iterdir():
            path.unlink()
        if damage == "a file in its place":
            entry.rmdir()
            entry.write_text("not a graph")
    assert_equal(cached_op_graph(library), expected)
    assert built == [library, library]
    cached_op_graph(library)
    assert len(built) == 2


def test_a_failed_analysis_leaves_nothing_behind(library: Path, folder: Path) -> None:
    def fail(elf: ElfFile, progress: Progress = SILENT) -> OpGraph:
        raise UnsupportedLibrary("strange", where=elf.path)

    with patch.object(cache, "build_op_graph", fail), pytest.raises(UnsupportedLibrary):
        cached_op_graph(library)
    assert entries(folder) == []


def test_only_the_entries_used_last_are_kept(library: Path, folder: Path, built: list[Path], tmp_path: Path) -> None:
    copies = [with_build_id(library, number, tmp_path) for number in range(KEPT_ENTRIES + 1)]
    now = time.time()
    for age, copy in enumerate(copies[:-1]):
        cached_op_graph(copy)
        os.utime(folder / f"{ElfFile(copy).build_id}-{FORMAT}", (now - 1000 + age, now - 1000 + age))
    # Reading the oldest makes it the youngest.
    cached_op_graph(copies[0])
    cached_op_graph(copies[-1])
    kept = {f"{ElfFile(copy).build_id}-{FORMAT}" for number, copy in enumerate(copies) if number != 1}
    assert set(entries(folder)) == kept


def test_what_a_killed_process_left_goes_after_a_day(library: Path, folder: Path, built: list[Path]) -> None:
    for name, age in ((".half.a", 2 * 24 * 3600), (".half.b", 60)):
        (folder / name).mkdir(parents=True)
        os.utime(folder / name, (time.time() - age,) * 2)
    cached_op_graph(library)
    assert [name for name in entries(folder) if name.startswith(".")] == [".half.b"]


def test_two_processes_at_once_build_once(library: Path, folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "both.py"
    script.write_text(
        "import sys; from pathlib import Path; from opsieve.graph import cache\n"
        "from tests.unit.native import op_graph_of\n"
        "def build(elf, progress):\n"
        "    print('built', flush=True)\n"
        "    return op_graph_of(elf)\n"
        "cache.build_op_graph = build\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "print(len(cache.cached_op_graph(Path(sys.argv[1])).operators))\n"
    )
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(Path(__file__).parents[3]))))
    environment = {**os.environ, "PYTHONPATH": path}
    processes = [
        subprocess.Popen(
            [sys.executable, script, library], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = sorted(process.communicate()[0] for process in processes)
    assert all(process.returncode == 0 for process in processes)
    count = outputs[0].split()[-1]
    assert outputs == [f"{count}\n", f"{count}\n", f"built\n{count}\n"]


def test_the_folder_is_the_users_unless_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSIEVE_CACHE", "/some/where")
    assert cache_folder() == Path("/some/where")
    monkeypatch.delenv("OPSIEVE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/a/cache")
    assert cache_folder() == Path("/a/cache/opsieve")


def test_faults_say_what_to_do(
    library: Path, compiler: Compiler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("OPSIEVE_CACHE", str(occupied))
    with pytest.raises(InvalidFile, match="cannot use the cache folder") as fault:
        cached_op_graph(library)
    assert "OPSIEVE_CACHE" in (fault.value.remedy or "")
    with pytest.raises(InvalidLibrary):
        cached_op_graph(occupied)
    nameless = compiler.library("int f() { return 1; }", flags=["-Wl,--build-id=none"])
    with pytest.raises(UnsupportedLibrary, match="no build id"):
        cached_op_graph(nameless)
