"""Slim runtimes of real models: same answers, nothing executed that was not kept, ordinary errors for the rest."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from opsieve.graph.load import LIBRARY
from opsieve.installed import TorchInstall
from opsieve.verify.judge import judged_torch
from tests.functional.runtimes.conftest import SCRIPT, Built

pytestmark = pytest.mark.torch
NAMES = ("mobile", "recurrent", "encoder")


def run(python: Path, *arguments: str | Path, site: Path | None = None, **environment: str) -> str:
    variables = {**os.environ, **environment, **({"PYTHONPATH": str(site)} if site else {})}
    done = subprocess.run([python, *arguments], env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("binding", ["", "1"])
def test_same_answers(built: Callable[[str], Built], install: TorchInstall, name: str, binding: str) -> None:
    slim = built(name)
    stock = run(install.python, SCRIPT, "run", slim.model, slim.inputs, LD_BIND_NOW=binding).split()
    ours = run(install.python, SCRIPT, "run", slim.model, slim.inputs, site=slim.site, LD_BIND_NOW=binding).split()
    assert ours[0].startswith(str(slim.site))
    assert ours[1] == stock[1]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("processor", [{}, {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}])
def test_executes_only_what_was_kept(
    built: Callable[[str], Built], install: TorchInstall, name: str, processor: dict[str, str]
) -> None:
    slim = built(name)
    functions = slim.plan.kept.graph.code.functions
    # Gaps and functions without a size are no places where an instruction is known to start.
    starts = functions.starts[functions.names >= 0]
    command = [install.python, SCRIPT, "run", slim.model, slim.inputs]
    with judged_torch(install, LIBRARY, starts) as (judge, environment):
        judged = judge.run(command, {**environment, **processor})
    assert judged.returncode == 0, judged.stderr[-2000:]
    kept = functions.starts[slim.plan.kept.kept]
    assert len(judged.executed) > 20_000
    assert not np.setdiff1d(judged.executed, kept).tolist()


def test_is_much_smaller(built: Callable[[str], Built]) -> None:
    report = built("mobile").report
    library = report.libraries[LIBRARY]
    assert library.file_size < 0.45 * library.stock_size
    assert report.package.kept_bytes < 0.4 * report.package.stock_bytes


PRUNED = """
import torch
x = torch.ones(2, 2)
for call in (
    lambda: torch.lgamma(x),
    lambda: torch.ops.aten.lgamma(x),
    lambda: torch.ops.aten.lgamma.out(x, out=x),
    lambda: torch.ones(2, requires_grad=True).lgamma(),
    lambda: torch.jit.script(LGAMMA)(x),
    lambda: x.to_sparse(),
    lambda: torch.fft.fft(x),
):
    try:
        call()
    except RuntimeError as error:
        print("RuntimeError", str(error).replace(chr(10), " "))
"""


def test_pruned_operators_raise(built: Callable[[str], Built], install: TorchInstall, tmp_path: Path) -> None:
    program = tmp_path / "pruned.py"
    program.write_text("def LGAMMA(x):\n    return x.lgamma()\n" + PRUNED)
    lines = run(install.python, program, site=built("mobile").site).splitlines()
    named = ["lgamma", "lgamma", "lgamma.out", "lgamma", "lgamma", "to_sparse", "fft_fft"]
    assert len(lines) == len(named)
    for line, operator in zip(lines, named, strict=True):
        assert line.startswith("RuntimeError")
        assert f"aten::{operator} is not in this opsieve build of PyTorch" in line
        assert f"--op aten::{operator}" in line


KERNEL_OUTSIDE_SCOPE = """
import torch
try:
    torch.empty(2, device="meta")
except RuntimeError as error:
    print(error)
"""


def test_kernels_outside_the_scope_name_the_scope(
    built: Callable[[str], Built], install: TorchInstall, tmp_path: Path
) -> None:
    program = tmp_path / "scope.py"
    program.write_text(KERNEL_OUTSIDE_SCOPE)
    text = run(install.python, program, site=built("mobile").site)
    assert "the Meta kernel of aten::empty.memory_format is not in this opsieve build" in text
    assert "--scope all" in text
