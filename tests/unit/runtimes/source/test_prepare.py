"""Compiling everything once: what is kept, what is told, and when it counts no more."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.objects import Compiler, ObjectStore, UnusableFlag
from opsieve.runtimes.source.packing import pack
from opsieve.runtimes.source.prepare import Prepared, prepare_workspace
from opsieve.runtimes.source.prepared import RECORD, load_prepared, object_path, read_prepared
from opsieve.runtimes.source.workspace import Workspace

from .small_workspace import SOURCES, needs_compiler, small_workspace

pytestmark = [needs_compiler, pytest.mark.usefixtures("cache")]

NO_HEADER = {"app/xnn.cpp": "#include <not/installed.h>\nint xnn() { return 1; }\n"}
BROKEN = {"app/broken.cpp": "int broken( { }\n"}


def prepared(workspace: Workspace, root: Path) -> Prepared:
    return prepare_workspace(workspace, Compiler.find(), ObjectStore(root / "store"), parallel=1)


def test_everything_is_compiled_once(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    first = prepared(workspace, tmp_path)
    assert (first.compiled, dict(first.left_out), dict(first.failures)) == (len(SOURCES), {}, {})
    assert first.archive.objects.keys() == SOURCES.keys()
    assert all(path.is_file() for path in first.archive.objects.values())
    assert (workspace.folder / "index.msgpack").is_file()  # a link wants it
    second = prepared(workspace, tmp_path)
    assert (second.compiled, second.archive.folder) == (0, first.archive.folder)


def test_a_source_without_its_header_is_told_and_left_out(tmp_path: Path) -> None:
    result = prepared(small_workspace(tmp_path, SOURCES | NO_HEADER), tmp_path)
    assert set(result.left_out) == set(NO_HEADER)
    assert not result.failures
    assert "not/installed.h" in result.archive.record.left_out["app/xnn.cpp"]
    assert set(prepared(result.workspace, tmp_path).left_out) == set(NO_HEADER)


def test_a_source_that_is_wrong_is_told_and_the_others_are_kept(tmp_path: Path) -> None:
    result = prepared(small_workspace(tmp_path, SOURCES | BROKEN), tmp_path)
    assert set(result.failures) == set(BROKEN)
    assert result.archive.objects.keys() == SOURCES.keys()


def test_an_interrupt_keeps_what_is_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opsieve.runtimes.source.objects.schedule import Schedule

    workspace, tell, told = small_workspace(tmp_path), Schedule._tell, list[int]()

    def interrupt(self: Schedule, advance: object) -> None:
        tell(self, lambda amount: None)
        if self.objects:
            told.append(len(self.objects))
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Schedule, "_tell", interrupt)
        with pytest.raises(KeyboardInterrupt):
            prepared(workspace, tmp_path)
    assert load_prepared(workspace) is None
    assert prepared(workspace, tmp_path).compiled == len(SOURCES) - told[0]


def test_the_archive_outlives_the_store(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    prepare_workspace(workspace, Compiler.find(), ObjectStore(tmp_path / "store", limit=0), parallel=1)
    ObjectStore(tmp_path / "store", limit=0).close()
    found = load_prepared(workspace)
    assert found is not None
    assert all(path.stat().st_size for path in found.objects.values())
    assert prepared(workspace, tmp_path / "empty").compiled == 0


def test_it_serves_no_other_options(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    prepared(workspace, tmp_path)
    other = replace(workspace, options=replace(workspace.options, dtype_header="// only float"))
    assert load_prepared(other) is None
    assert load_prepared(workspace) is not None


def test_objects_for_this_processor_are_looked_at_each_time(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    native = replace(workspace, options=replace(workspace.options, extra_flags=("-march=native",)))
    archive = prepared(native, tmp_path).archive
    assert load_prepared(native) is None
    assert prepared(native, tmp_path).compiled == 0
    with pytest.raises(UnusableFlag, match="serve no machine but this one"):
        pack(native, archive, Compiler.find(), tmp_path / "new")


def test_a_file_that_a_flag_names_counts(tmp_path: Path) -> None:
    mapping = tmp_path / "symbols.map"
    mapping.write_text("one")
    workspace = small_workspace(tmp_path)
    named = replace(workspace, options=replace(workspace.options, extra_flags=(f"-frandom-seed={mapping}",)))
    prepared(named, tmp_path)
    assert load_prepared(named) is not None
    mapping.write_text("another")
    assert load_prepared(named) is None


def test_it_serves_no_tree_with_more_sources(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    prepared(workspace, tmp_path)
    more = {**workspace.sources, "app/new.cpp": tmp_path / "new.cpp"}
    assert load_prepared(replace(workspace, sources=more)) is None


def test_a_header_of_the_system_that_changed_ends_it(tmp_path: Path) -> None:
    header = tmp_path / "system/third.h"
    header.parent.mkdir()
    header.write_text("#define THIRD 3\n")
    uses = {"app/third.cpp": f'#include "{header}"\nint third() {{ return THIRD; }}\n'}
    workspace = small_workspace(tmp_path, SOURCES | uses)
    prepared(workspace, tmp_path)
    assert load_prepared(workspace) is not None
    header.write_text("#define THIRD 33333\n")
    assert load_prepared(workspace) is None
    assert prepared(workspace, tmp_path).compiled == 1
    assert load_prepared(workspace) is not None


def test_a_header_of_the_tree_that_no_fingerprint_covers_counts(tmp_path: Path) -> None:
    uses = {"app/third.cpp": "#include <third_party/fmt.h>\nint third() { return THIRD; }\n"}
    workspace = small_workspace(tmp_path, SOURCES | uses)
    header = workspace.tree.root / "third_party/fmt.h"
    header.write_text("#define THIRD 3\n")
    before = workspace.tree.fingerprint()
    prepared(workspace, tmp_path)
    assert load_prepared(workspace) is not None
    header.write_text("#define THIRD 33333\n")
    assert workspace.tree.fingerprint() == before
    assert load_prepared(workspace) is None


def test_an_archive_goes_a_day_after_it_was_replaced(tmp_path: Path) -> None:
    header = tmp_path / "third.h"
    header.write_text("#define THIRD 3\n")
    uses = {"app/third.cpp": f'#include "{header}"\nint third() {{ return THIRD; }}\n'}
    workspace = small_workspace(tmp_path, SOURCES | uses)
    first = prepared(workspace, tmp_path).archive
    os.utime(first.folder, (0, 0))
    header.write_text("#define THIRD 33333\n")
    prepared(workspace, tmp_path)
    assert first.folder.is_dir()  # a link may be using it
    os.utime(first.folder, (0, 0))
    header.write_text("#define THIRD 3333333\n")
    last = prepared(workspace, tmp_path).archive
    assert not first.folder.exists()
    assert last.folder.is_dir()


def test_a_search_path_of_the_environment_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = small_workspace(tmp_path)
    prepared(workspace, tmp_path)
    monkeypatch.setenv("CPATH", str(tmp_path))
    assert load_prepared(workspace) is None


@pytest.mark.parametrize("damage", ["object", "record", "references"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    workspace = small_workspace(tmp_path)
    archive = prepared(workspace, tmp_path).archive
    if damage == "object":
        path = archive.objects["app/main.cpp"]
        path.unlink()
        path.write_bytes(b"half")
    elif damage == "record":
        (archive.folder / RECORD).write_text("{")
    else:
        (archive.folder / "references/starts.npy").write_bytes(b"\x93NUMPY")
        with pytest.raises(InvalidFile):
            _ = read_prepared(archive.folder).references
        return
    assert load_prepared(workspace) is None
    prepared(workspace, tmp_path)
    assert load_prepared(workspace) is not None


@pytest.mark.parametrize("name", ["../x.cpp", "/etc/x", "", "a/../../b", "a\0b"])
def test_names_stay_in_the_archive(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidFile):
        object_path(tmp_path, name)
