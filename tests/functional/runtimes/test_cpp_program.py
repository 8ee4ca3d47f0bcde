"""A C++ program linked against the full PyTorch runs on the slim one that was built for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opsieve.installed import TorchInstall
from opsieve.models import TorchOverloads, read_model
from opsieve.runtimes.wheel.build import BuildRequest, build, plan_build
from tests.functional.runtimes.conftest import Built

pytestmark = pytest.mark.torch
SOURCE = Path(__file__).with_name("program.cpp")


def compile_program(package: Path, output: Path) -> None:
    libraries = package / "lib"
    folders = [f"-I{package / 'include'}", f"-I{package / 'include/torch/csrc/api/include'}", f"-L{libraries}"]
    # Without a fixed library path: the test chooses the full or the slim libraries by LD_LIBRARY_PATH.
    command = ["g++", "-std=c++20", "-O0", *folders, SOURCE, "-o", output, "-Wl,--no-as-needed"]
    subprocess.run([*command, "-ltorch", "-ltorch_cpu", "-lc10"], check=True, capture_output=True)


def run(program: Path, model: Path, libraries: Path) -> str:
    variables = {**os.environ, "LD_LIBRARY_PATH": str(libraries)}
    done = subprocess.run([program, model], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def test_program(built: Callable[[str], Built], install: TorchInstall, tmp_path: Path) -> None:
    program, model = tmp_path / "program", built("mobile").model
    compile_program(install.package, program)
    needs = [read_model(model, overloads=TorchOverloads(install))]
    plan = plan_build(install, BuildRequest(needs, consumers=[program], with_headers=True, wheel=False))
    report = build(plan, tmp_path / "slim")
    stock = run(program, model, install.library("")).splitlines()
    slim = run(program, model, report.package.folder / "torch" / "lib").splitlines()
    assert slim[0] == stock[0]
    assert stock[1] == "lgamma is there"
    assert slim[1].startswith("c10::Error aten::lgamma is not in this opsieve build of PyTorch")
    again = tmp_path / "again"
    compile_program(report.package.folder / "torch", again)
    assert run(again, model, report.package.folder / "torch" / "lib").splitlines() == slim
