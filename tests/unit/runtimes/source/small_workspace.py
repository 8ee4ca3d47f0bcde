"""A workspace of a few tiny sources in a folder that looks like PyTorch's tree."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import Site, SiteKind, Sites
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.options import BuildOptions, Threads
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.workspace import Workspace, workspace_folders

from .fake_tree import fake_tree

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

OPTIONS = BuildOptions(threads=Threads.NONE)

SOURCES = {
    "app/main.cpp": "int used();\nint main() { return used(); }\n",
    # What is dead in a file must not bring its needs.
    "app/used.cpp": "int deep(); int dead();\nint used() { return deep(); }\nint unused() { return dead(); }\n",
    "app/deep.cpp": "int from_start();\nstatic int started = from_start();\nint deep() { return started; }\n",
    "app/start.cpp": "int from_start() { return 3; }\n",
    "app/dead.cpp": "int other();\nint dead() { return 1; }\nint at_start = other();\n",
    "app/other.cpp": "int other() { return 2; }\n",
    "app/named.cpp": 'extern "C" int named() { return 7; }\n',
    "opsieve/registrar.cpp": "namespace opsieve { [[noreturn]] void missing(const char*, const char*) { throw 1; } }\n",
}
"""A program that needs the first four, and `app/named.cpp` if it is asked to keep `named`."""


NAMED = Site(SiteKind.SCHEMA, OperatorName.parse("my::op"), "named", "app/named.cpp", 1)


def small_workspace(root: Path, sources: Mapping[str, str] = SOURCES) -> Workspace:
    """Write the tree and the sources below `root`; the rest is where the user's cache is."""
    tree = fake_tree(root / "tree")
    (tree / "CMakeLists.txt").write_text("set(CMAKE_CXX_STANDARD 17)\n")
    for name, text in sources.items():
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    opened = SourceTree.open(tree)
    generated, folder = workspace_folders(opened, OPTIONS, Compiler.find())
    for place in (generated, folder):
        place.mkdir(parents=True, exist_ok=True)
    return Workspace(opened, OPTIONS, folder, generated, {name: tree / name for name in sources}, Sites((NAMED,)), ())
