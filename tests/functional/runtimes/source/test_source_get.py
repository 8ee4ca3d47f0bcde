from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opsieve.errors import SourceUnavailable
from opsieve.runtimes.source.build_lists import read_build_lists
from opsieve.runtimes.source.debian_source import get_source
from opsieve.runtimes.source.tree import FULL_INTERPRETER, LITE_INTERPRETER, SourceTree

SYSTEM_FOLDERS = ("/etc/apt", "/var/lib/apt", "/var/cache/apt")

pytestmark = pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt")

NO_NETWORK = ("Could not resolve", "Could not connect", "Temporary failure", "name no archive", "Connection")
"""What says that this machine cannot reach a package archive at all."""


@pytest.fixture(scope="module", params=["2.6.0", "1.13.1"])
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> SourceTree:
    version: str = request.param
    before = names_under_the_system_folders()
    try:
        got = get_source(version, tmp_path_factory.mktemp("source") / version)
    except SourceUnavailable as error:
        if any(words in str(error) for words in (*NO_NETWORK, "no suite of the package archive")):
            pytest.skip(str(error))
        raise
    assert got.tree.version == version
    assert names_under_the_system_folders() == before
    return got.tree


def names_under_the_system_folders() -> list[tuple[str, float]]:
    files = (file for folder in SYSTEM_FOLDERS for file in Path(folder).rglob("*"))
    return sorted((str(file), file.lstat().st_mtime) for file in files)


def test_the_tree_is_whole(tree: SourceTree) -> None:
    lite, full = tree.sources(LITE_INTERPRETER), tree.sources(FULL_INTERPRETER)
    assert 500 < len(lite) < len(full) < 1000
    assert set(lite) < set(full)
    assert {"c10/core/Device.cpp", "caffe2/serialize/inline_container.cc", "torch/csrc/jit/mobile/import.cpp"} < set(
        lite
    )
    assert any(path.endswith("/miniz.c") for path in lite)


def test_the_lists_are_those_that_python_makes_of_the_file(tree: SourceTree) -> None:
    """As PyTorch's CMake reads them: the tree comes from a signed package, so here its file may run."""
    names = (
        "jit_core_sources",
        "aten_native_source_non_codegen_list",
        "libtorch_lite_cmake_sources",
        "libtorch_cmake_sources",
    )
    code = f"exec(open('build_variables.bzl').read()); print('\\n'.join(' '.join(x) for x in ({', '.join(names)})))"
    done = subprocess.run(["python3", "-c", code], cwd=tree.root, capture_output=True, text=True, check=True)
    lists = read_build_lists(tree.root / "build_variables.bzl")
    for name, line in zip(names, done.stdout.splitlines(), strict=True):
        assert lists.get(name) == tuple(line.split())


def test_a_second_call_finds_it(tree: SourceTree) -> None:
    assert get_source(tree.version, Path(tree.root)).package is None
