from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from opsieve.cli.main import run
from opsieve.runtimes.source import doctor
from tests.unit.runtimes.source.fake_tools import GOLD, LLD, compiler, says
from tests.unit.runtimes.source.fake_tree import fake_tree


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor, "python_package", lambda name: "1.0")
    compiler(folder, {"fmt/format.h": "90100", "cpuinfo.h": ""})
    says(folder, "ar", "")
    says(folder, "apt-get", "")
    says(folder, "ld.lld", LLD)
    return folder


def test_status_0_when_nothing_required_is_missing(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "Nothing that every build needs is missing." in printed
    (command,) = (line for line in printed.splitlines() if line.startswith("  apt-get install -y "))
    assert {"libflatbuffers-dev", "libopenblas-dev", "libsleef-dev"} < set(command.split())
    assert all(len(line) <= 80 for line in printed.splitlines() if line != command)


def test_status_1_and_one_line_when_something_is(tools: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tools / "ld.lld").unlink()
    says(tools, "ld", GOLD)
    compiler(tools, {"cpuinfo.h": ""})
    assert run(["doctor", "--runtime", "source"]) == 1
    printed = capsys.readouterr().out
    assert "\n\n  apt-get install -y libfmt-dev lld\n" in printed
    assert "note: gold 1.16 would keep everything" in printed
    assert printed.count("MISSING") == 2


def test_json_holds_all_of_it(tools: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tools / "ar").unlink()
    root = fake_tree(tmp_path / "pytorch")
    assert run(["doctor", "--source", str(root), "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["source"] == {"version": "2.6.0", "folder": str(root)}
    assert told["missing"] == ["ar"]
    assert told["install_required"] == "apt-get install -y binutils"
    assert {check["name"]: check["found"] for check in told["checks"]}["fmt headers"] == "9.1.0"


def test_a_folder_that_is_no_tree_is_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--source", str(tmp_path)]) == 2
    assert "no PyTorch source tree" in capsys.readouterr().err
