"""The doctor on this very machine: what it says is there must be usable."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from opsieve.runtimes.source.doctor import diagnose
from opsieve.runtimes.source.doctor_probes import Header, find_header, linkers
from opsieve.runtimes.source.objects.compiler import Compiler

pytestmark = pytest.mark.skipif(not shutil.which("g++") and not shutil.which("clang++"), reason="needs a C++ compiler")


def test_what_is_found_is_there() -> None:
    checks = {check.name: check for check in diagnose().checks}
    assert checks["C++ compiler"].ok
    assert checks["PyYAML"].ok
    for check in checks.values():
        assert not check.path or Path(check.path).exists(), check


def test_a_header_of_the_compilers_own_folders_has_its_path_and_version(tmp_path: Path) -> None:
    compiler = Compiler.find()
    assert find_header(Header("optional"), compiler)
    assert find_header(Header("opsieve/nowhere.h"), compiler) is None
    (tmp_path / "opsieve.h").write_text("#define A 1\n#define B 22\n")
    found = find_header(Header("opsieve.h", "A.B.A"), compiler, [tmp_path])
    assert found
    assert (found.path, found.version) == (tmp_path / "opsieve.h", "1.22.1")


def test_a_header_that_does_not_compile_is_not_found(tmp_path: Path) -> None:
    (tmp_path / "opsieve.h").write_text("#include <opsieve/nowhere.h>\n")
    assert find_header(Header("opsieve.h"), Compiler.find(), [tmp_path]) is None


def test_the_linker_that_the_compiler_brings_is_recognised() -> None:
    assert linkers()
