from __future__ import annotations

import json
from pathlib import Path

import pytest

from opsieve.cli.main import run
from tests.unit.runtimes.source.fake_tree import fake_tree


def test_a_tree_that_is_there_needs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = fake_tree(tmp_path / "pytorch")
    assert run(["source", "get", "2.6.0", "--to", str(root)]) == 0
    assert capsys.readouterr().out == f"PyTorch 2.6.0 is in {root} already; nothing to do.\n"
    assert run(["source", "get", "2.6.0", "--to", str(root), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "version": "2.6.0",
        "folder": str(root),
        "package": None,
        "downloaded_bytes": 0,
    }


def test_another_tree_in_the_way_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = fake_tree(tmp_path / "pytorch")
    assert run(["source", "get", "1.13.1", "--to", str(root)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "2.6.0 is there already" in printed.err


def test_without_apt_it_says_how_to_clone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(["source", "get", "2.6.0", "--to", str(tmp_path / "new")]) == 2
    assert "try: git clone" in capsys.readouterr().err


def test_the_folder_must_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["source", "get", "2.6.0"]) == 2
    assert "--to" in capsys.readouterr().err
