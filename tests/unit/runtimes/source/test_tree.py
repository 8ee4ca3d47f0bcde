from __future__ import annotations

import os
from pathlib import Path

import pytest

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source import tree as tree_module
from opsieve.runtimes.source.tree import (
    FULL_INTERPRETER,
    LITE_INTERPRETER,
    ORIGIN_FILE,
    SourceGroup,
    SourceTree,
    parse_version,
)

from .fake_tree import fake_tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fake_tree(tmp_path / "pytorch")


def test_a_tree_knows_its_place_and_version(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root.parent)
    assert SourceTree.open(Path("pytorch")) == SourceTree(root, "2.6.0")


@pytest.mark.parametrize(
    ("text", "version"),
    [("1.13.1", (1, 13, 1)), ("2.6.0a0+git1eba9b3\n", (2, 6, 0)), ("v2.10", (2, 10, 0)), ("main", None), ("", None)],
)
def test_versions_are_read(text: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(text) == version


def test_the_release_is_known_where_the_tree_came_from_one(root: Path) -> None:
    (root / "version.txt").write_text("1.13.0a0\n")
    (root / ORIGIN_FILE).write_text("1.13.1\n")
    assert SourceTree.open(root).version == "1.13.1"


def test_a_note_of_another_release_is_not_believed(root: Path) -> None:
    (root / ORIGIN_FILE).write_text("1.13.1\n")
    assert SourceTree.open(root).version == "2.6.0"


def test_other_folders_are_no_tree(tmp_path: Path) -> None:
    (tmp_path / "version.txt").write_text("2.6.0\n")
    with pytest.raises(InvalidSourceTree, match="no PyTorch source tree"):
        SourceTree.open(tmp_path)
    with pytest.raises(InvalidSourceTree, match="no such folder"):
        SourceTree.open(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "name", ["aten/src/ATen/native/native_functions.yaml", "build_variables.bzl", "torchgen/gen.py"]
)
def test_a_broken_tree_names_what_is_missing(root: Path, name: str) -> None:
    (root / name).unlink()
    with pytest.raises(InvalidSourceTree, match=f"{name} is missing"):
        SourceTree.open(root)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("1.11.0a0\n", "1.11.0 is too old"), ("main\n", "cannot be read: 'main'"), ("\n", "does not say its version")],
)
def test_versions_that_do_not_do(root: Path, text: str, problem: str) -> None:
    (root / "version.txt").write_text(text)
    with pytest.raises(InvalidSourceTree, match=problem):
        SourceTree.open(root)


def test_an_old_tree_without_torchgen_is_called_old_not_broken(root: Path) -> None:
    (root / "torchgen/gen.py").unlink()
    (root / "version.txt").write_text("1.10.2a0\n")
    with pytest.raises(InvalidSourceTree, match="too old"):
        SourceTree.open(root)


def test_a_missing_version_file_is_said(root: Path) -> None:
    (root / "version.txt").unlink()
    with pytest.raises(InvalidSourceTree, match="does not say its version"):
        SourceTree.open(root)


def test_the_sources_of_the_lite_interpreter(root: Path) -> None:
    assert SourceTree.open(root).sources(LITE_INTERPRETER) == (
        "aten/src/ATen/Context.cpp",
        "aten/src/ATen/native/Copy.cpp",
        "aten/src/ATen/native/cpu/CopyKernel.cpp",
        "aten/src/ATen/native/cpu/SumKernel.cpp",
        "c10/core/Device.cpp",
        "caffe2/serialize/crc.cc",
        "third_party/miniz-9.9/miniz.c",
        "torch/csrc/autograd/edge.cpp",
        "torch/csrc/jit/frontend/lexer.cpp",
        "torch/csrc/jit/mobile/import.cpp",
    )


def test_the_full_interpreter_takes_more(root: Path) -> None:
    tree = SourceTree.open(root)
    assert set(tree.sources(FULL_INTERPRETER)) - set(tree.sources(LITE_INTERPRETER)) == {
        "aten/src/ATen/ConjugateFallback.cpp",
        "aten/src/ATen/core/List.cpp",
        "torch/csrc/jit/ir/ir.cpp",
    }


def test_a_list_that_another_version_lacks_is_empty(tmp_path: Path) -> None:
    tree = SourceTree.open(fake_tree(tmp_path / "pytorch", lists=""))
    assert tree.sources([SourceGroup.JIT_CORE]) == ()


@pytest.mark.parametrize("path", ["../outside.cpp", "/outside.cpp", "c10/../../outside.cpp"])
def test_lists_cannot_lead_out_of_the_tree(tmp_path: Path, path: str) -> None:
    root = fake_tree(tmp_path / "pytorch", lists=f"jit_core_sources = [{path!r}]")
    (tmp_path / "outside.cpp").touch()
    with pytest.raises(InvalidSourceTree, match="outside"):
        SourceTree.open(root).sources([SourceGroup.JIT_CORE])


def test_the_fingerprint_is_of_contents_not_of_times_or_places(root: Path, tmp_path: Path) -> None:
    before = SourceTree.open(root).fingerprint()
    os.utime(root / "c10/core/TensorImpl.h", (1, 1))
    (root / "README.md").write_text("nothing that a build reads")
    assert SourceTree.open(root).fingerprint() == before
    assert SourceTree.open(fake_tree(tmp_path / "elsewhere")).fingerprint() == before


@pytest.mark.parametrize(
    "name", ["c10/core/TensorImpl.h", "torch/csrc/jit/ir/ir.cpp", "build_variables.bzl", "torchgen/gen.py"]
)
def test_the_fingerprint_changes_with_what_a_build_reads(root: Path, name: str) -> None:
    before = SourceTree.open(root).fingerprint()
    text = (root / name).read_text()
    (root / name).write_text(text[:-1] + "#")
    assert SourceTree.open(root).fingerprint() != before


def test_the_fingerprint_changes_with_names_and_version(root: Path) -> None:
    tree = SourceTree.open(root)
    before = tree.fingerprint()
    (root / "c10/core/Device.cpp").rename(root / "c10/core/Devices.cpp")
    after = tree.fingerprint()
    assert len({before, after, SourceTree(root, "2.6.1").fingerprint()}) == 3


def test_a_file_without_end_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree_module, "MAX_FILE_BYTES", 20)
    with pytest.raises(InvalidSourceTree, match="too large"):
        SourceTree.open(root).fingerprint()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_an_error(root: Path) -> None:
    tree = SourceTree.open(root)
    (root / "torchgen/gen.py").chmod(0)
    with pytest.raises(InvalidSourceTree, match="cannot be read"):
        tree.fingerprint()
    root.chmod(0)
    try:
        with pytest.raises(InvalidSourceTree, match="cannot be read"):
            SourceTree.open(root)
    finally:
        root.chmod(0o755)
