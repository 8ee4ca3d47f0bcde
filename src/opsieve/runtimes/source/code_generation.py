"""Running the tree's own code generators, in child processes: operators, kernels' registrations, headers.

Nothing is written into the tree. The generators differ between versions in which options they know, so what they are
given is looked up in their sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from opsieve.errors import InvalidSourceTree
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.tree import SourceTree

BACKENDS = ("CPU", "QuantizedCPU", "SparseCPU", "SparseCsrCPU")
"""The dispatch keys for which kernels are generated."""

ATEN = "aten/src"
"""Below the output folder: what torchgen writes, as an include folder."""

AUTOGRAD = "autograd"
"""Below the output folder: what tools/setup_helpers/generate_code.py writes, as an include folder."""

_TIMEOUT = 600
_NOT_REGISTERED = ("Everything", "Functionalization", "NestedTensor", "CompositeViewCopyKernels")


def generate(tree: SourceTree, folder: Path, progress: Progress = SILENT) -> None:
    """Write the generated headers and sources of a tree into an empty folder.

    Takes about 15 s. Raises InvalidSourceTree with the generator's own words when it fails.
    """
    aten = folder / ATEN / "ATen"
    aten.mkdir(parents=True)
    (folder / "inductor").mkdir()
    (folder / AUTOGRAD).mkdir()
    with progress.stage("generating code", 2) as advance:
        _run(tree, "torchgen.gen", _torchgen_options(tree, aten, folder / "inductor"))
        advance(1)
        options = ["--disable-autograd", "--subset", "libtorch", "--gen-dir", str(folder / AUTOGRAD)]
        _run(tree, "tools.setup_helpers.generate_code", options)
        advance(1)


def registration_files(folder: Path) -> dict[str, Path]:
    """The generated sources that register or dispatch operators: name -> path."""
    return {
        f"generated/{file.name}": file
        for file in sorted((folder / ATEN / "ATen").glob("*.cpp"))
        if file.name.startswith(("Register", "Operators_")) and not any(word in file.name for word in _NOT_REGISTERED)
    }


def other_files(folder: Path) -> dict[str, Path]:
    """The other generated sources that a runtime may need: name -> path."""
    aten = folder / ATEN / "ATen"
    files = [
        *aten.glob("Ufunc*.cpp"),
        aten / "Functions.cpp",
        aten / "CompositeViewCopyKernels.cpp",
        *aten.glob("core/*.cpp"),
    ]
    return {f"generated/{file.name}": file for file in sorted(files) if file.is_file()}


def _torchgen_options(tree: SourceTree, aten: Path, inductor: Path) -> list[str]:
    options = ["--source-path", "aten/src/ATen", "--install_dir", str(aten), "--per-operator-headers"]
    options += ["--backend_whitelist", *BACKENDS]
    generator = (tree.root / "torchgen/gen.py").read_text(encoding="utf-8", errors="replace")
    if "--aoti_install_dir" in generator:
        options += ["--aoti_install_dir", str(inductor)]
        if "--update-aoti-c-shim" in generator:
            # Otherwise it compares its result with files that only exist where the shim was generated before.
            options.append("--update-aoti-c-shim")
    return [*options, "--generate", "headers", "sources"]


def _run(tree: SourceTree, module: str, options: Sequence[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(tree.root), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", module, *options]
    try:
        done = subprocess.run(
            command, cwd=tree.root, env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidSourceTree(f"{module} did not end within {_TIMEOUT} s", where=tree.root) from error
    if done.returncode:
        words = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["no message"]
        raise InvalidSourceTree(
            f"the tree's code generator {module} failed: {words[0][:200]}",
            where=tree.root,
            expected="a complete PyTorch source tree, with PyYAML and typing_extensions for this Python",
            remedy=f"cd {tree.root} && PYTHONPATH=. {sys.executable} -m {module} --help",
        )
