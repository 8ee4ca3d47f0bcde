from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opsieve.errors import MissingInstallation
from opsieve.runtimes.source import doctor, doctor_probes, packages
from opsieve.runtimes.source.doctor import Check, Diagnosis, diagnose
from opsieve.runtimes.source.doctor_probes import parse_linker
from opsieve.runtimes.source.packages import Need, install_line
from opsieve.runtimes.source.tree import SourceTree

from .fake_tools import GNU_LD, GOLD, LLD, MOLD, OLD_GNU_LD, compiler, says
from .fake_tree import fake_tree, write_schema

HEADERS = {"fmt/format.h": "90100", "cpuinfo.h": ""}


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is all of PATH; it has what a build needs."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(doctor, "python_package", lambda name: "1.0")
    compiler(folder, HEADERS)
    says(folder, "ld.lld", LLD)
    says(folder, "ar", "")
    return folder


def check(diagnosis: Diagnosis, name: str) -> Check:
    (found,) = (check for check in diagnosis.checks if check.name == name)
    return found


def test_with_everything_there_nothing_is_missing(tools: Path) -> None:
    diagnosis = diagnose()
    assert diagnosis.missing == ()
    assert diagnosis.install_required is None
    assert check(diagnosis, "C++ compiler").found == "g++ 12.2.0"
    assert check(diagnosis, "linker").found == "lld 14.0"
    assert check(diagnosis, "fmt headers").found == "9.1.0"
    assert check(diagnosis, "cpuinfo headers").found == "/there/cpuinfo.h"
    diagnosis.demand()


def test_an_empty_machine_lacks_all_of_it(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("g++", "ld.lld", "ar"):
        (tools / name).unlink()
    monkeypatch.setattr(doctor_probes, "find_header", lambda *_: None)
    monkeypatch.setattr(doctor, "find_header", lambda *_: None)
    monkeypatch.setattr(doctor, "python_package", lambda name: None)
    says(tools, "apt-get", "")
    diagnosis = diagnose()
    names = ["C++ compiler", "linker", "ar", "fmt headers", "cpuinfo headers", "PyYAML", "typing_extensions"]
    assert [check.name for check in diagnosis.missing] == names
    assert diagnosis.install_required == (
        "apt-get install -y binutils g++ libcpuinfo-dev libfmt-dev lld"
        f" && {sys.executable} -m pip install PyYAML typing_extensions"
    )
    assert diagnosis.install_optional == (
        "apt-get install -y flatbuffers-compiler libflatbuffers-dev libfp16-dev libfxdiv-dev libopenblas-dev"
        " libpsimd-dev libpthreadpool-dev libsleef-dev"
    )
    with pytest.raises(MissingInstallation, match="lacks C\\+\\+ compiler, linker, ar") as caught:
        diagnosis.demand()
    assert caught.value.remedy == diagnosis.install_required


def test_required_checks_come_first(tools: Path) -> None:
    required = [check.required for check in diagnose().checks]
    assert required == sorted(required, reverse=True)


def test_a_compiler_that_cannot_compile_is_not_there(tools: Path) -> None:
    compiler(tools, HEADERS, works=False)
    found = check(diagnose(), "C++ compiler")
    assert not found.ok
    assert "does not compile" in found.note


def test_without_a_compiler_headers_are_looked_for_in_the_usual_folders(tools: Path, tmp_path: Path) -> None:
    (tools / "g++").unlink()
    root = fake_tree(tmp_path / "pytorch")
    (root / "third_party/fmt/include/fmt").mkdir(parents=True)
    (root / "third_party/fmt/include/fmt/format.h").touch()
    found = check(diagnose(SourceTree.open(root)), "fmt headers")
    assert found.path == str(root / "third_party/fmt/include/fmt/format.h")


@pytest.mark.parametrize(
    ("words", "text", "prunes"),
    [
        (GNU_LD, "GNU ld 2.40", True),
        (OLD_GNU_LD, "GNU ld 2.35", False),
        ("GNU ld (GNU Binutils for Ubuntu) 2.37.50.20220106", "GNU ld 2.37", True),
        ("GNU ld (GNU Binutils; openSUSE Leap 15.5) 2.41.0.20230908-150100.7.46", "GNU ld 2.41", True),
        (LLD, "lld 14.0", True),
        ("LLD 12.0.1 (compatible with GNU linkers)", "lld 12.0", False),
        (GOLD, "gold 1.16", False),
        (MOLD, "mold 2.30", False),
    ],
)
def test_linkers_are_known_by_what_they_say(words: str, text: str, prunes: bool) -> None:
    linker = parse_linker(words + "\nCopyright 2022\n", Path("ld"))
    assert linker is not None
    assert str(linker) == text
    assert linker.prunes is prunes


def test_other_programs_are_no_linkers() -> None:
    assert parse_linker("", Path("ld")) is None
    assert parse_linker("@(#)PROGRAM:ld  PROJECT:ld-1015.7", Path("ld")) is None


def test_linkers_that_keep_everything_are_named(tools: Path) -> None:
    (tools / "ld.lld").unlink()
    for name, words in (("ld", OLD_GNU_LD), ("ld.gold", GOLD), ("mold", MOLD)):
        says(tools, name, words)
    found = check(diagnose(), "linker")
    assert not found.ok
    assert found.found == "GNU ld 2.35, gold 1.16, mold 2.30"
    assert "keep everything" in found.note


def test_flatc_has_to_be_that_of_the_headers(tools: Path, tmp_path: Path) -> None:
    root = fake_tree(tmp_path / "pytorch")
    write_schema(root, "23.3.3")
    tree = SourceTree.open(root)
    assert check(diagnose(tree), "flatc").install is Need.FLATC
    compiler(tools, {**HEADERS, "flatbuffers/flatbuffers.h": "2 . 0 . 8"})
    assert check(diagnose(tree), "flatbuffers headers").found == "2.0.8"
    assert (check(diagnose(tree), "flatc").ok, check(diagnose(tree), "flatc").note) == (False, "")
    says(tools, "flatc", "flatc version 1.12.0")
    old = check(diagnose(tree), "flatc")
    assert (old.ok, old.install) == (False, None)
    assert old.note.startswith("flatc is 1.12.0 and the headers of flatbuffers are 2.0.8")
    says(tools, "flatc", "flatc version 2.0.8")
    assert (check(diagnose(tree), "flatc").ok, check(diagnose(tree), "flatc").found) == (True, "2.0.8")


def test_a_tree_whose_header_fits_needs_no_flatc(tools: Path, tmp_path: Path) -> None:
    root = fake_tree(tmp_path / "pytorch")
    write_schema(root, "23.3.3")
    compiler(tools, {**HEADERS, "flatbuffers/flatbuffers.h": "23.3.3"})
    assert check(diagnose(SourceTree.open(root)), "flatc").ok
    assert not check(diagnose(), "flatc").ok


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("apt-get", "sudo apt-get install -y g++ libfmt-dev"),
        ("dnf", "sudo dnf install -y fmt-devel gcc-c++"),
        ("brew", "brew install fmt llvm"),
    ],
)
def test_every_package_manager_has_its_names(
    tools: Path, monkeypatch: pytest.MonkeyPatch, program: str, line: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    says(tools, program, "")
    assert install_line([Need.FMT, Need.COMPILER]) == line


def test_without_a_package_manager_the_usual_names_are_said(tools: Path) -> None:
    assert install_line([Need.FMT, Need.COMPILER]) == "# the development packages of fmt, g++"
    assert install_line([]) is None


def test_package_managers_know_everything_that_is_not_pythons() -> None:
    for manager in packages.MANAGERS:
        lacking = {Need.PTHREADPOOL, Need.FP16, Need.FXDIV, Need.PSIMD} if "brew" in manager.command else set()
        assert set(manager.names) == set(Need) - packages.PYTHON_NEEDS - lacking


def test_what_a_package_manager_does_not_have_is_said(tools: Path) -> None:
    says(tools, "brew", "")
    assert install_line([Need.FMT, Need.PSIMD]) == "brew install fmt  # the development packages of psimd"
    assert install_line([Need.FXDIV, Need.PSIMD]) == "# the development packages of FXdiv, psimd"
