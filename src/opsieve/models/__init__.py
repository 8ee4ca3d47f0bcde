"""Model files in, their root operators out. Needs no PyTorch and reads no weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from pathlib import Path

from opsieve.models.archive import open_archive
from opsieve.models.detect import Format, archive_format, container_format
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.models.overloads import OverloadResolver, Resolution, TorchOverloads
from opsieve.models.torchscript import Script, needs_of, read_script, why_not_compiled
from opsieve.progress import SILENT, Progress

__all__ = [
    "Format",
    "ModelNeeds",
    "OverloadResolver",
    "Reach",
    "RootOperator",
    "TorchOverloads",
    "Use",
    "read_model",
    "read_models",
]


def read_model(path: Path, *, overloads: OverloadResolver | None = None) -> ModelNeeds:
    """The root operators of the model at `path`, whatever its format. See `read_models`."""
    return read_models([path], overloads=overloads)[0]


def read_models(
    paths: Sequence[Path], *, overloads: OverloadResolver | None = None, progress: Progress = SILENT
) -> list[ModelNeeds]:
    """The root operators of each model, in the order of `paths`.

    TorchScript code names only base operators. With `overloads` the exact ones are asked for, once for all models;
    without it, or where it finds none, a root stands for all overloads of its name and a note says why.
    The other formats are always exact. Weights are never read, nothing of a model is executed.

    Raises InvalidModel for the first file that is broken, hostile or of another format.
    """
    drafts: list[ModelNeeds | Script] = []
    with progress.stage("reading models", len(paths)) as advance:
        for path in paths:
            drafts.append(_read(path))
            advance(1)
    scripts = [draft for draft in drafts if isinstance(draft, Script)]
    resolutions: Iterator[Resolution | str | None] = repeat(None)
    if scripts and overloads is not None:
        with progress.stage("resolving overloads"):
            resolutions = iter(_resolve(scripts, overloads))
    return [needs_of(draft, next(resolutions)) if isinstance(draft, Script) else draft for draft in drafts]


def _read(path: Path) -> ModelNeeds | Script:
    if container_format(path) is Format.LITE_FLATBUFFER:
        from opsieve.models.flatbuffer import read_flatbuffer

        return read_flatbuffer(path)
    with open_archive(path) as archive:
        match archive_format(archive):
            case Format.EXPORT:
                from opsieve.models.export import read_export

                return read_export(archive)
            case Format.LITE:
                from opsieve.models.lite import read_lite

                return read_lite(archive)
            case _:
                return read_script(archive)


def _resolve(scripts: Sequence[Script], overloads: OverloadResolver) -> list[Resolution | str]:
    """An answer for each script; those that must not be compiled are not sent."""
    answers: list[Resolution | str | None] = [why_not_compiled(script) for script in scripts]
    asked = [script.sources for script, refusal in zip(scripts, answers, strict=True) if refusal is None]
    found = iter(overloads.resolve(asked) if asked else ())
    return [next(found) if answer is None else answer for answer in answers]
