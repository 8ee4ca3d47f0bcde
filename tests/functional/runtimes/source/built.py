"""Models for runtimes from source, what the installed PyTorch answers, and a runtime built by the command line."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opsieve.cli.main import run


@dataclass(frozen=True)
class Model:
    """A saved model, and how to call the one it was saved from."""

    path: Path
    answer: Callable[[Any], Any]
    """A torch tensor -> what the installed PyTorch answers."""


@dataclass(frozen=True)
class Runtime:
    """The output of a build."""

    folder: Path
    report: dict[str, Any]

    @property
    def operators(self) -> set[str]:
        return set(self.report["operators"])

    @property
    def program(self) -> Path:
        return self.folder / "bin/run"

    def __call__(self, model: Path, *words: str, status: int = 0) -> str:
        done = subprocess.run(
            [self.program, str(model), *words], capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stderr

    def difference(self, model: Model, given: Any, folder: Path, *words: str) -> float:
        """The largest relative difference from the installed PyTorch's answer for a torch tensor."""
        np.save(folder / "given.npy", given.numpy())
        expected = model.answer(given).numpy()
        np.save(folder / "expected.npy", expected)
        said = self(model.path, "--input", str(folder / "given.npy"), "--expect", str(folder / "expected.npy"),
                    "--tolerance", "1e-4", "--json", *words)  # fmt: skip
        (output,) = json.loads(said)["outputs"]
        return float(output["absolute"]) / max(1e-12, float(np.abs(expected).max()))


def save_lite(module: Any, folder: Path, name: str, *, flatbuffer: bool = False) -> Model:
    """Save a module for the lite interpreter, as a zip or as a flatbuffer."""
    import torch

    scripted = torch.jit.script(module.eval())
    path = folder / f"{name}.ptl"
    scripted._save_for_lite_interpreter(str(path), _use_flatbuffer=flatbuffer)

    def answer(given: Any) -> Any:
        with torch.no_grad():
            return scripted(given)

    return Model(path, answer)


def build(models: Sequence[Path], tree: Path, folder: Path, capsys: Any, *options: str) -> Runtime:
    """`opsieve build --runtime source`, as a user calls it."""
    capsys.readouterr()
    words = ["build", *map(str, models), "--runtime", "source", "--source", str(tree), "-o", str(folder)]
    status = run([*words, "--format", "json", *options])
    said = capsys.readouterr()
    assert status == 0, said.err
    return Runtime(folder, json.loads(said.out))


def strings_of(program: Path, pattern: str) -> set[str]:
    """What a pattern finds in the bytes of a program."""
    return {found.decode() for found in re.findall(pattern.encode(), program.read_bytes())}
