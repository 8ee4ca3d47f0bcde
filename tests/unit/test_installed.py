from __future__ import annotations

import sys
from pathlib import Path

import pytest

from opsieve.errors import MissingInstallation
from opsieve.installed import ChildFailed, find_torch, run_child


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package `torch` that is found first and would fail if it were imported."""
    folder = tmp_path / "site" / "torch"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (folder / "version.py").write_text("__all__ = []\n__version__ = '9.8.7+cpu'\ncuda = None\n")
    monkeypatch.syspath_prepend(str(folder.parent))
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    return folder


@pytest.mark.parametrize("python", [None, Path(sys.executable)])
def test_torch_is_found_without_importing_it(package: Path, python: Path | None) -> None:
    found = find_torch(python)
    assert (found.package, found.version) == (package, "9.8.7+cpu")
    assert found.site == package.parent
    assert found.library("libtorch_cpu.so") == package / "lib" / "libtorch_cpu.so"
    assert found.python == Path(sys.executable)


def test_a_missing_torch_is_told_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingInstallation, match="not installed") as caught:
        find_torch()
    assert "pip install" in str(caught.value.remedy)


def test_an_interpreter_that_is_none_is_told(tmp_path: Path) -> None:
    with pytest.raises(MissingInstallation, match="no Python interpreter"):
        find_torch(tmp_path / "nothing")


def test_a_package_without_a_version_is_told(package: Path) -> None:
    (package / "version.py").write_text("")
    with pytest.raises(MissingInstallation, match="cannot read the version"):
        find_torch()


def child(tmp_path: Path, code: str) -> Path:
    script = tmp_path / "child.py"
    script.write_text(f"import json, os, sys, time\n{code}\n")
    return script


def run(script: Path, request: object = None, **options: object) -> object:
    return run_child(Path(sys.executable), script, request, **options)  # type: ignore[arg-type]


def test_request_and_answer_are_json(tmp_path: Path) -> None:
    script = child(tmp_path, "print(json.dumps({'got': json.load(sys.stdin), 'set': os.environ['SET']}))")
    assert run(script, {"a": [1, "é"]}, environment={"SET": "x"}) == {"got": {"a": [1, "é"]}, "set": "x"}


def test_the_child_does_not_import_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "helper_beside.py").write_text("")
    with pytest.raises(ChildFailed, match="No module named 'helper_beside'"):
        run(child(tmp_path, "import helper_beside"))


def test_a_failing_child_is_told_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match="status 3: the reason") as caught:
        run(child(tmp_path, "sys.stderr.write('the reason'); sys.exit(3)"))
    assert caught.value.returncode == 3
    assert caught.value.stderr == "the reason"


def test_a_killed_child_is_told_with_its_signal(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match="status -9"):
        run(child(tmp_path, "os.kill(os.getpid(), 9)"))


def test_an_answer_that_is_no_json_is_told(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match="not json"):
        run(child(tmp_path, "print('not json')"))


def test_a_child_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ChildFailed, match=r"no answer within 0\.1 seconds"):
        run(child(tmp_path, "time.sleep(600)"), timeout=0.1)
