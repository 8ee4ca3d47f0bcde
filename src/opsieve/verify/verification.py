"""Running models on the stock and on the slim PyTorch, and comparing whatever comes out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from opsieve.errors import InvalidFile, MissingInstallation
from opsieve.installed import TorchInstall
from opsieve.models.archive import open_archive
from opsieve.models.detect import Format, archive_format, container_format
from opsieve.progress import SILENT, Progress
from opsieve.verify.child_process import Runtime
from opsieve.verify.inputs import Inputs, InputsFromFile, InputsFromModel, InputsFromShapes
from opsieve.verify.outcome import Outcome, OutcomeKind, Verdict, compare, differ_in_bytes_only
from opsieve.verify.processes import AT_START, ask, run_variations
from opsieve.verify.report import Comparison, VerifyReport
from opsieve.verify.settings import Processor
from opsieve.verify.variation import PreparedInputs, Variation, variations


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is tried."""

    thorough: bool = False
    """All settings for all inputs, not only for those given."""

    other_processors: bool = True
    """Also with the instruction sets of older processors."""

    calls: int = 3
    """How often an input is given to the same model: a state may grow, and TorchScript compiles on later calls."""

    seconds: float = 600.0
    """How long one variation may take."""


USUAL_EFFORT = Effort()
_STOCK, _SLIM = "full", "slim"


@dataclass(frozen=True, slots=True)
class ModelUnderTest:
    """A model, and what to call it with."""

    path: Path
    inputs: Inputs
    method: str = "forward"


def verify(
    models: Sequence[ModelUnderTest],
    *,
    stock: TorchInstall,
    slim: TorchInstall,
    effort: Effort = USUAL_EFFORT,
    progress: Progress = SILENT,
) -> VerifyReport:
    """Compare `stock` with `slim`, which is put onto PYTHONPATH of its interpreter.

    Every model runs in child processes only. Raises InvalidModel and InvalidFile for models and inputs that cannot
    be used, MissingInstallation when one of the two runtimes is not the one that its name says.
    """
    if "opsieve" in stock.version:
        raise MissingInstallation(
            f"the PyTorch to compare with is itself a slim one ({stock.version})",
            where=stock.package,
            remedy="name a Python that has the full PyTorch: --against PYTHON",
        )
    with tempfile.TemporaryDirectory(prefix="opsieve-verify-") as folder:
        caches = _bytecode_caches(slim.package, Path(folder))
        neutral = _neutral(stock, slim)
        ours = Runtime(slim.python, slim.package, on_path=True, environment=caches, neutral=neutral)
        theirs = Runtime(stock.python, stock.package, neutral=neutral)
        plan = _plan(models, theirs, Path(folder), effort, progress)
        expected = _run(_STOCK, theirs, plan, effort, progress)
        _refuse_useless(plan, expected)
        found = _run(_SLIM, ours, plan, effort, progress)
        compared = [_compared(variation, expected, found) for variation in plan]
        compared = _reconsidered(compared, theirs, effort, progress)
    return VerifyReport(stock.version, slim.version, tuple(compared))


def _neutral(*installs: TorchInstall) -> dict[str, str]:
    """Names that say only which of the two runtimes speaks.

    Both are replaced on both sides: a TorchScript model names the files it was once compiled from, and these may well
    be those of the full PyTorch. Longer names come first, in case one is a part of another.
    """
    names = {str(path): "<torch>" for i in installs for path in (i.package, i.package.resolve())}
    names |= {install.version: "<version>" for install in installs}
    return dict(sorted(names.items(), key=lambda item: (-len(item[0]), item)))


def _bytecode_caches(package: Path, folder: Path) -> dict[str, str]:
    """Switches of Python that keep it from writing into the slim package, at no cost to later children."""
    if (package / "__pycache__").is_dir():
        return {"PYTHONDONTWRITEBYTECODE": "1"}
    return {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def model_format(path: Path) -> Format:
    """The format of a model file. Raises InvalidModel when it is none that can be run."""
    container = container_format(path)
    if container is not None:
        return container
    with open_archive(path) as archive:
        return archive_format(archive)


def _plan(
    models: Sequence[ModelUnderTest],
    stock: Runtime,
    folder: Path,
    effort: Effort,
    progress: Progress,
) -> list[Variation]:
    """Make the inputs of all models, and list what will be tried."""
    plan: list[Variation] = []
    with progress.stage("making inputs", len(models)) as advance:
        for index, model in enumerate(models):
            place = folder / str(index)
            place.mkdir()
            kind = model_format(model.path)
            prepared = _prepare(model, kind, stock, place, effort)
            tried = variations(model.path, kind, model.method, prepared, thorough=effort.thorough)
            for variation in tried:
                if effort.other_processors or variation.settings.processor is Processor.NATIVE:
                    plan.append(replace(variation, number=len(plan)))
            advance(1)
    return plan


def _prepare(model: ModelUnderTest, kind: Format, stock: Runtime, folder: Path, effort: Effort) -> list[PreparedInputs]:
    if isinstance(model.inputs, InputsFromModel) and kind is not Format.EXPORT:
        raise InvalidFile(
            "this model holds no example inputs",
            where=model.path,
            remedy="give them: --inputs FILE (of torch.save), or --shape 1,3,224,224",
        )
    request = {
        "task": "prepare",
        "model": str(model.path.absolute()),
        "source": _source(model.inputs),
        "calls": effort.calls,
        "folder": str(folder),
    }
    answer = ask(stock, request, seconds=effort.seconds)
    if "fault" in answer:
        raise InvalidFile(f"the inputs cannot be used: {answer['fault']}", where=_place(model))
    return msgspec.convert(answer["prepared"], list[PreparedInputs])


def _source(inputs: Inputs) -> dict[str, Any]:
    match inputs:
        case InputsFromFile(path):
            return {"file": str(path.absolute())}
        case InputsFromShapes(arguments):
            return {"arguments": [asdict(argument) for argument in arguments]}
        case InputsFromModel():
            return {}


def _place(model: ModelUnderTest) -> Path:
    return model.inputs.path if isinstance(model.inputs, InputsFromFile) else model.path


def _run(
    title: str, runtime: Runtime, plan: Sequence[Variation], effort: Effort, progress: Progress
) -> dict[int, Outcome]:
    with progress.stage(f"running on {title} PyTorch", len(plan)) as advance:
        return run_variations(runtime, plan, seconds=effort.seconds, finished=advance)


def _refuse_useless(plan: Sequence[Variation], outcomes: Mapping[int, Outcome]) -> None:
    """Where the full PyTorch does not answer to the inputs as given, two runtimes that agree would prove nothing."""
    for variation in plan:
        outcome = outcomes[variation.number]
        if outcome.stage == AT_START:
            raise MissingInstallation(f"the full PyTorch does not start: {outcome.told}")
        if variation.inputs.plain and outcome.kind is not OutcomeKind.RESULTS:
            raise InvalidFile(
                f"the full PyTorch does not run this model ({variation.label}): {outcome.told}",
                where=variation.model,
                remedy="give inputs that the model accepts, with --inputs or --shape",
            )


def _compared(variation: Variation, expected: dict[int, Outcome], found: dict[int, Outcome]) -> Comparison:
    stock, slim = expected[variation.number], found[variation.number]
    return Comparison(variation, stock, slim, *compare(stock, slim))


def _reconsidered(compared: list[Comparison], stock: Runtime, effort: Effort, progress: Progress) -> list[Comparison]:
    """Run the stock runtime again where only bytes differ, to see whether it agrees with itself."""
    doubtful = [c.variation for c in compared if differ_in_bytes_only(c.stock, c.slim)]
    again = _run(_STOCK, stock, doubtful, effort, progress) if doubtful else {}
    return [
        replace(c, verdict=Verdict.UNSTABLE, reason="two runs of the stock PyTorch gave different bytes")
        if c.variation.number in again and differ_in_bytes_only(c.stock, again[c.variation.number])
        else c
        for c in compared
    ]
