"""A link from a prepared archive gives what the rounds of compiling and linking give."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.runtimes.source.index import NOTHING_LEARNED
from opsieve.runtimes.source.link.linker import find_linker
from opsieve.runtimes.source.link_prepared import link_prepared
from opsieve.runtimes.source.objects import Compiler, ObjectStore
from opsieve.runtimes.source.prepare import prepare_workspace
from opsieve.runtimes.source.references import References
from opsieve.runtimes.source.selective_link import Linked, SelectiveLink
from opsieve.runtimes.source.tree_index import tree_index
from opsieve.runtimes.source.workspace import Workspace

from .small_workspace import SOURCES, needs_compiler, small_workspace

pytestmark = [needs_compiler, pytest.mark.usefixtures("cache")]


def symbols(program: Path) -> set[str]:
    """All that a program defines, initialisers included."""
    told = subprocess.run(["nm", "--defined-only", "-P", program], capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in told.splitlines()}


SEEDS = ("app/main.cpp", "opsieve/registrar.cpp")
LIVE = {*SEEDS, "app/used.cpp", "app/deep.cpp", "app/start.cpp"}


def linking(workspace: Workspace, store: ObjectStore, linker: str | None = None) -> SelectiveLink:
    compiler = Compiler.find()
    return SelectiveLink(
        workspace,
        compiler,
        find_linker(compiler, linker),
        store,
        tree_index(workspace),
        NOTHING_LEARNED,
        (),
        parallel=1,
    )


def from_archive(workspace: Workspace, root: Path, linker: str | None = None) -> Linked:
    with ObjectStore(root / "store") as store:
        archive = prepare_workspace(workspace, Compiler.find(), store, parallel=1).archive
        return link_prepared(linking(workspace, store, linker), archive, SEEDS, (), root / "fast")


def by_rounds(workspace: Workspace, root: Path, linker: str | None = None) -> Linked:
    with ObjectStore(root / "store") as store:
        return linking(workspace, store, linker).run(SEEDS, (), root / "slow")


def test_one_link_and_nothing_that_only_dead_code_refers_to(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    fast = from_archive(workspace, tmp_path)
    assert (set(fast.objects), fast.rounds, fast.compiled) == (LIVE, 1, 0)
    assert subprocess.run([fast.program], check=False).returncode == 3


@pytest.mark.parametrize("linker", ["lld", "bfd", "gold", "mold"])
def test_it_is_what_the_rounds_link(tmp_path: Path, linker: str) -> None:
    if shutil.which(f"ld.{linker}") is None:
        pytest.skip(f"needs {linker}")
    workspace = small_workspace(tmp_path)
    slow, fast = by_rounds(workspace, tmp_path, linker), from_archive(workspace, tmp_path, linker)
    assert slow.rounds > fast.rounds == 1
    assert set(fast.objects) == set(slow.objects)
    assert symbols(fast.program) == symbols(slow.program)


def test_a_root_brings_its_file(tmp_path: Path) -> None:
    with ObjectStore(tmp_path / "store") as store:
        workspace = small_workspace(tmp_path)
        archive = prepare_workspace(workspace, Compiler.find(), store, parallel=1).archive
        fast = link_prepared(linking(workspace, store), archive, SEEDS, ("named",), tmp_path / "fast")
    assert (set(fast.objects), fast.rounds) == (LIVE | {"app/named.cpp"}, 1)


def test_what_is_left_out_gets_a_stand_in_at_once(tmp_path: Path) -> None:
    extra = {
        "app/start.cpp": "int xnn(); int from_start() { return xnn(); }\n",
        "app/xnn.cpp": "#include <not/installed.h>\nint xnn() { return 1; }\n",
    }
    fast = from_archive(small_workspace(tmp_path, SOURCES | extra), tmp_path)
    assert fast.rounds == 1
    assert [(item.source, "not/installed.h" in item.reason) for item in fast.left_out] == [("app/xnn.cpp", True)]


def test_what_dead_code_lacks_is_not_told(tmp_path: Path) -> None:
    extra = {"app/other.cpp": "#include <not/installed.h>\nint other() { return 1; }\n"}
    fast = from_archive(small_workspace(tmp_path, SOURCES | extra), tmp_path)
    assert (fast.rounds, fast.left_out) == (1, ())


def test_what_the_forecast_misses_the_link_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opsieve.runtimes.source.references import Forecast

    monkeypatch.setattr(References, "forecast", lambda *arguments: Forecast((), frozenset()))
    fast = from_archive(small_workspace(tmp_path), tmp_path)
    assert set(fast.objects) == LIVE
    assert fast.rounds > 1
    assert fast.compiled == 0


def test_a_source_that_the_archive_lacks_is_compiled(tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path)
    application = tmp_path / "mine.cpp"
    application.write_text("int used();\nint main() { return used() + 1; }\n")
    with ObjectStore(tmp_path / "store") as store:
        archive = prepare_workspace(workspace, Compiler.find(), store, parallel=1).archive
        mine = replace(workspace, sources={**workspace.sources, "mine.cpp": application})
        seeds = ("mine.cpp", "opsieve/registrar.cpp")
        linked = link_prepared(linking(mine, store), archive, seeds, (), tmp_path / "program")
    assert linked.compiled == 1
    assert subprocess.run([linked.program], check=False).returncode == 4
