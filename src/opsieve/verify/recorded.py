"""What a build has recorded beside its runtime."""

from __future__ import annotations

from pathlib import Path

from opsieve.errors import InvalidFile
from opsieve.installed import TorchInstall, install_at
from opsieve.runtimes.wheel.build import SELECTION
from opsieve.runtimes.wheel.package import PYTHON_FOLDER
from opsieve.select.store import selection_from_json


def slim_torch(build: Path, python: Path) -> TorchInstall:
    """The PyTorch in the output of `opsieve build`, for use with the interpreter `python`.

    Raises InvalidFile when there is none.
    """
    package = build / PYTHON_FOLDER / "torch"
    if not (package / "version.py").is_file():
        raise InvalidFile(
            "there is no slim PyTorch in this folder",
            where=build,
            expected=f"the output folder of `opsieve build`, with {PYTHON_FOLDER}/torch in it",
        )
    return install_at(package, python)


def models_of(build: Path) -> tuple[Path, ...]:
    """The models that a build was made for. Raises InvalidFile when that is not recorded or one has gone."""
    models = tuple(Path(model.path) for model in selection_from_json(build / SELECTION).models)
    for model in models:
        if not model.is_file():
            raise InvalidFile(
                "this model, for which the build was made, is not there any more",
                where=model,
                remedy="name where it is now: --model FILE",
            )
    return models
