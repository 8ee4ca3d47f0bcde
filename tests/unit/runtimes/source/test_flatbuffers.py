"""Which header reads flatbuffer models, and when it is made anew."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source.doctor_probes import FoundHeader, Tool
from opsieve.runtimes.source.flatbuffers import (
    IN_TREE,
    SCHEMA_HEADER,
    Remedy,
    SchemaHeader,
    flatc_places,
    remedy,
    stated_version,
)
from opsieve.runtimes.source.objects import Compiler, ObjectStore, cause
from opsieve.runtimes.source.prepare import prepare_workspace
from opsieve.runtimes.source.prepared import load_prepared

from .fake_tools import compiler, flatc
from .fake_tree import fake_tree, write_schema
from .small_workspace import needs_compiler, small_workspace

LOADER = {
    "app/loader.cpp": f"#include <{SCHEMA_HEADER}>\nint loader() {{ return 1; }}\n",
    "app/other.cpp": "int other() { return 1; }\n",
    "opsieve/registrar.cpp": "int registrar;\n",
}
SYSTEM = FoundHeader(Path("/usr/include/flatbuffers/flatbuffers.h"), "2.0.8")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first in PATH, and the only one with a `flatc`."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    real = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: real(name, path=str(folder) if name == "flatc" else None))
    return folder


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = fake_tree(tmp_path / "pytorch")
    write_schema(root, "23.3.3")
    return root


def schema_header(tree: Path, tools: Path, version: str) -> SchemaHeader:
    """For a compiler that finds this version of the library; none if it is empty."""
    folder = tools.parent / "compiler"
    folder.mkdir(exist_ok=True)
    path = compiler(folder, {"flatbuffers/flatbuffers.h": version} if version else {})
    return SchemaHeader(tree, Compiler(path, "fake"), (), tools.parent / "workspace")


@pytest.mark.parametrize("version", ["23.3.3", ""])
def test_a_header_tells_its_release_or_does_not(tree: Path, version: str) -> None:
    write_schema(tree, version)
    assert stated_version(tree) == version


def test_a_tree_without_the_header_states_nothing(tmp_path: Path) -> None:
    assert stated_version(tmp_path) == ""


@pytest.mark.parametrize(
    ("stated", "library", "tool", "expected"),
    [
        ("23.3.3", None, Tool(Path("flatc"), "2.0.8"), Remedy.NONE),
        ("2.0.8", SYSTEM, None, Remedy.NONE),
        ("23.3.3", SYSTEM, Tool(Path("flatc"), "2.0.8"), Remedy.GENERATE),
        ("23.3.3", SYSTEM, Tool(Path("flatc"), "23.3.3"), Remedy.MISSING),
        ("23.3.3", SYSTEM, None, Remedy.MISSING),
        ("", SYSTEM, Tool(Path("flatc"), "2.0.8"), Remedy.GENERATE),
        ("", SYSTEM, None, Remedy.MISSING),
        ("", replace(SYSTEM, version=""), Tool(Path("flatc"), "2.0.8"), Remedy.MISSING),
    ],
)
def test_what_has_to_be_done(
    tree: Path, stated: str, library: FoundHeader | None, tool: Tool | None, expected: Remedy
) -> None:
    write_schema(tree, stated)
    assert remedy(tree, library, tool) is expected


def test_a_tree_with_its_own_library_has_the_header_for_it(tree: Path) -> None:
    own = FoundHeader(tree / IN_TREE / "flatbuffers/flatbuffers.h", "2.0.8")
    write_schema(tree)
    assert remedy(tree, own, None) is Remedy.NONE
    (tree / SCHEMA_HEADER).unlink()
    assert remedy(tree, own, None) is Remedy.MISSING
    assert remedy(tree, own, Tool(Path("flatc"), "2.0.8")) is Remedy.GENERATE


def test_without_the_schema_nothing_can_be_generated(tree: Path) -> None:
    (tree / SCHEMA_HEADER).with_name("mobile_bytecode.fbs").unlink()
    assert remedy(tree, SYSTEM, Tool(Path("flatc"), "2.0.8")) is Remedy.MISSING


def test_the_header_is_made_with_the_trees_options_and_once(tree: Path, tools: Path) -> None:
    flatc(tools, "2.0.8")
    header = schema_header(tree, tools, "2.0.8")
    (folder,) = header.include
    assert "--cpp --gen-mutable --scoped-enums -o" in (folder / SCHEMA_HEADER).read_text()
    flatc(tools, "2.0.8", works=False)  # would fail if it was called again
    assert schema_header(tree, tools, "2.0.8").include == (folder,)


def test_another_release_and_another_schema_make_another_header(tree: Path, tools: Path) -> None:
    flatc(tools, "2.0.8")
    made = {schema_header(tree, tools, "2.0.8").include}
    (tree / SCHEMA_HEADER).with_name("mobile_bytecode.fbs").write_text("changed\n")
    made.add(schema_header(tree, tools, "2.0.8").include)
    flatc(tools, "1.12.0")
    made.add(schema_header(tree, tools, "1.12.0").include)
    assert len(made) == 3


def test_without_the_library_nothing_is_made(tree: Path, tools: Path) -> None:
    flatc(tools, "2.0.8")
    assert schema_header(tree, tools, "").include == ()
    assert not (tools.parent / "workspace").exists()


def test_a_flatc_that_fails_leaves_nothing_and_says_why(tree: Path, tools: Path) -> None:
    flatc(tools, "2.0.8", works=False)
    with pytest.raises(InvalidSourceTree, match=r"flatc 2\.0\.8 failed: error: no"):
        _ = schema_header(tree, tools, "2.0.8").include
    flatc(tools, "2.0.8")
    assert schema_header(tree, tools, "2.0.8").include


@needs_compiler
@pytest.mark.usefixtures("cache")
def test_only_sources_that_include_the_header_see_the_folder(tmp_path: Path, tools: Path) -> None:
    workspace = small_workspace(tmp_path, LOADER)
    write_schema(workspace.tree.root, "23.3.3")
    flatc(tools, "2.0.8")
    header = schema_header(workspace.tree.root, tools, "2.0.8")
    known = replace(workspace, schema_header=header)
    assert known.job("app/loader.cpp").include == (*header.include, *workspace.job("app/loader.cpp").include)
    assert known.job("app/other.cpp") == workspace.job("app/other.cpp")


@needs_compiler
@pytest.mark.usefixtures("cache")
def test_without_its_flatc_the_source_is_left_out_until_there_is_one(tmp_path: Path, tools: Path) -> None:
    bare = small_workspace(tmp_path, LOADER)
    write_schema(bare.tree.root, "23.3.3")
    workspace = replace(bare, schema_header=schema_header(bare.tree.root, tools, "2.0.8"))
    store = ObjectStore(tmp_path / "store")
    first = prepare_workspace(workspace, Compiler.find(), store, parallel=1)
    assert not first.failures
    assert cause(first.left_out["app/loader.cpp"].errors[0]) == "flatc 2.0.8 is not installed"
    assert load_prepared(workspace) is not None
    flatc(tools, "2.0.8")
    workspace = replace(bare, schema_header=schema_header(bare.tree.root, tools, "2.0.8"))
    assert load_prepared(workspace) is None
    second = prepare_workspace(workspace, Compiler.find(), store, parallel=1)
    assert (dict(second.left_out), second.compiled) == ({}, 1)


def test_where_flatc_would_be(tools: Path) -> None:
    assert next(flatc_places()) == f"{tools}/flatc"
