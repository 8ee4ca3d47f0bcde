from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest

from opsieve.cli.main import run
from opsieve.cli.prepare_source import prepare_source
from opsieve.cli.source_options import SourceOptions, source_options
from opsieve.runtimes.source import prepare as prepare_module
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.packing import pack
from opsieve.runtimes.source.prepared import load_prepared
from opsieve.runtimes.source.workspace import Workspace
from tests.unit.runtimes.source.conftest import cache
from tests.unit.runtimes.source.small_workspace import SOURCES, needs_compiler, small_workspace

__all__ = ["cache"]

pytestmark = [needs_compiler, pytest.mark.usefixtures("cache")]

NO_HEADER = {"app/xnn.cpp": "#include <not/installed.h>\nint xnn() { return 1; }\n"}
BROKEN = {"app/broken.cpp": "int broken( { }\n"}


def options(source: Path) -> SourceOptions:
    given: dict[str, Any] = {}
    command = click.Command("build", callback=lambda **values: given.update(values))
    source_options(command)
    command.main(["--source", str(source), "--threads", "none", "-j", "1"], standalone_mode=False)
    return SourceOptions(**given)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    made = small_workspace(tmp_path, SOURCES | NO_HEADER)
    monkeypatch.setattr(prepare_module, "open_workspace", lambda *arguments: made)
    return made


def test_preparing_tells_what_is_left_out(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert prepare_source(options(workspace.tree.root), "table") == 0
    printed = capsys.readouterr().out
    assert "left out: app/xnn.cpp" in printed
    assert "not/installed.h" in printed
    assert max(map(len, printed[: printed.index("MB of objects")].splitlines())) <= 80
    assert prepare_source(options(workspace.tree.root), "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["objects"], told["compiled"], list(told["left_out"])) == (len(SOURCES), 0, ["app/xnn.cpp"])


def test_a_source_that_is_wrong_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = small_workspace(tmp_path, SOURCES | BROKEN)
    monkeypatch.setattr(prepare_module, "open_workspace", lambda *arguments: made)
    assert prepare_source(options(made.tree.root), "table") == 1
    assert "does not compile: app/broken.cpp" in capsys.readouterr().out


def test_unpacking_says_how_to_build(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_source(options(workspace.tree.root), "json")
    prepared = load_prepared(workspace)
    assert prepared is not None
    archive = pack(workspace, prepared, Compiler.find(), tmp_path / "runtime.opsieve").path
    monkeypatch.setenv("OPSIEVE_CACHE", str(tmp_path / "elsewhere"))
    capsys.readouterr()
    assert run(["runtime", "unpack", str(archive), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["version"], told["already"], told["options"]["--threads"]) == ("2.6.0", False, "none")
    assert (Path(told["source"]) / "c10/core/TensorImpl.h").is_file()
    assert run(["runtime", "unpack", str(archive)]) == 0
    assert "was there already" in capsys.readouterr().out


def test_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "wrong").write_text("no archive")
    assert run(["runtime", "unpack", str(tmp_path / "wrong")]) == 2
    assert run(["runtime", "unpack", str(tmp_path / "missing")]) == 2
    assert run(["runtime", "unpack", str(tmp_path)]) == 2
    assert run(["runtime", "pack", str(tmp_path / "new")]) == 2
    assert "--source" in capsys.readouterr().err
