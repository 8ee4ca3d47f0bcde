"""What the tests of slim runtimes share: model files, and one build for each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from opsieve.installed import TorchInstall, find_torch
from opsieve.models import TorchOverloads, read_model
from opsieve.runtimes.wheel.build import BuildReport, BuildRequest, Plan, build, plan_build

SCRIPT = Path(__file__).with_name("models.py")


@dataclass(frozen=True, slots=True)
class Built:
    """A model, and the slim runtime made for it."""

    model: Path
    inputs: Path
    plan: Plan
    folder: Path
    report: BuildReport

    @property
    def site(self) -> Path:
        return self.folder / "python"


@pytest.fixture(scope="session")
def install() -> TorchInstall:
    return find_torch()


@pytest.fixture(scope="session")
def built(install: TorchInstall, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """The slim runtime for one of the models of models.py, made once."""

    @cache
    def make(name: str) -> Built:
        folder = tmp_path_factory.mktemp(name)
        subprocess.run([install.python, SCRIPT, "make", name, folder], check=True, capture_output=True)
        model = folder / f"{name}.pt"
        plan = plan_build(install, BuildRequest([read_model(model, overloads=TorchOverloads(install))], wheel=False))
        report = build(plan, folder / "slim")
        return Built(model, folder / f"{name}.inputs.pt", plan, folder / "slim", report)

    return make
