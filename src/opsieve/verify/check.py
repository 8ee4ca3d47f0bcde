"""Will a model load and run on a runtime? All that is missing, before anything runs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from opsieve.errors import InvalidFile
from opsieve.graph.scopes import Scope
from opsieve.models.demands import ModelDemands, read_demands
from opsieve.models.needs import ModelNeeds, Reach, RootOperator
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.capabilities import CAPABILITIES, Capabilities, Range, capabilities_from_json
from opsieve.runtimes.source.output.folder import COMMAND
from opsieve.runtimes.source.wanted import LOADABLE, Policy
from opsieve.runtimes.wheel.build import SELECTION
from opsieve.select.choose import implied_scopes
from opsieve.select.selection import Selection
from opsieve.select.store import selection_from_json

_MAX_COMMAND = 1 << 20
_FEW = 4
"""Operators that are worth naming one by one on a command line."""


class Lack(StrEnum):
    """What kind of thing is missing."""

    FORMAT = "format"
    """The runtime has no loader for such files."""

    VERSION = "version"
    """The loader is too old or too new for the file."""

    OPERATOR = "operator"
    """The model calls it, and it was left out."""

    FOREIGN = "foreign operator"
    """The model calls it, and the runtime's PyTorch does not have it."""

    SCOPE = "scope"
    """The model uses a kind of tensor that the runtime has no kernels for."""

    CLASS = "custom class"
    DTYPE = "dtype"
    """A weight has it, and no kernel of the runtime keeps it."""


class When(StrEnum):
    """When the model would fail."""

    LOAD = "load"
    RUN = "run"


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One thing that is missing. `used_by` are methods of the model, `remedy` is what adds it."""

    kind: Lack
    name: str
    when: When
    problem: str
    used_by: tuple[str, ...] = ()
    remedy: str = ""
    option: tuple[str, ...] = ()
    """The words for the build's command line that add it; none if a word does not help."""


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What one model misses, sorted; `notes` are what could not be told."""

    path: str
    format: str
    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def options(self) -> list[tuple[str, ...]]:
        """The words for the build's command line that add what is missing; of many operators, the model itself."""
        operators = [f.option for f in self.findings if f.kind is Lack.OPERATOR]
        others = [f.option for f in self.findings if f.kind is not Lack.OPERATOR and f.option]
        return [*others, *(operators if len(operators) <= _FEW else [(self.path,)])]


@dataclass(frozen=True, slots=True)
class RuntimeFacts:
    """What a runtime's folder says of it. Without `capabilities` it is a slim wheel, which loads every format."""

    folder: Path
    selection: Selection
    capabilities: Capabilities | None
    command: tuple[str, ...] = ()
    """What built it, if the folder says so."""

    def rebuild(self, checked: Sequence[ModelCheck]) -> str | None:
        """The command that adds all that words can add; None if there is nothing to add."""
        words = [word for option in dict.fromkeys(o for model in checked for o in model.options) for word in option]
        if not words:
            return None
        before = [word for word in self.command if word != "--force"]
        return f"{shlex.join(before) if before else 'opsieve build ...'} {shlex.join(words)} --force"


def read_runtime(folder: Path) -> RuntimeFacts:
    """What `opsieve build` wrote into `folder`. Raises InvalidFile when it is no such folder."""
    if not (folder / SELECTION).is_file():
        raise InvalidFile(
            "this is no runtime that opsieve built",
            where=folder,
            expected=f"a folder with {SELECTION}, as `opsieve build -o DIR` writes it",
        )
    record = folder / CAPABILITIES
    capabilities = capabilities_from_json(record) if record.is_file() else None
    return RuntimeFacts(folder, selection_from_json(folder / SELECTION), capabilities, _command(folder / COMMAND))


def _command(path: Path) -> tuple[str, ...]:
    try:
        if path.stat().st_size > _MAX_COMMAND:
            return ()
        return tuple(shlex.split(path.read_text(encoding="utf-8", errors="replace")))
    except (OSError, ValueError):
        return ()


def check(models: Sequence[ModelNeeds], runtime: RuntimeFacts, progress: Progress = SILENT) -> tuple[ModelCheck, ...]:
    """What each model would miss. Raises InvalidModel for a file that is broken."""
    checked = []
    with progress.stage("checking models", len(models)) as advance:
        for model in models:
            checked.append(_check(model, read_demands(Path(model.path)), runtime))
            advance(1)
    return tuple(checked)


def _check(model: ModelNeeds, demands: ModelDemands, runtime: RuntimeFacts) -> ModelCheck:
    findings, can = [*_operators(model, runtime), *_scopes(model, runtime)], runtime.capabilities
    if can is not None:
        findings += [*_loading(model, demands, can), *_classes(model, can), *_dtypes(demands, can)]
    return ModelCheck(model.path, model.format, tuple(sorted(findings)), tuple(_notes(model, runtime)))


def _operators(model: ModelNeeds, runtime: RuntimeFacts) -> Iterator[Finding]:
    selection = runtime.selection
    there = selection.names
    bases = {operator.name.base_name for operator in selection.operators}
    foreign = {str(operator.name) for operator in selection.missing}
    for root in model.roots:
        name = str(root.name)
        if name in there or (root.all_overloads and root.name.base_name in bases):
            continue
        if runtime.capabilities is None and root.reach is Reach.INTERPRETER:
            continue  # a wheel keeps the interpreter's own operators, whichever models it is for
        methods = tuple(sorted({use.method for use in root.uses}))
        when = When.LOAD if runtime.capabilities is not None else When.RUN
        if name in foreign:
            problem = f"PyTorch {selection.runtime.version} does not have it"
            yield Finding(Lack.FOREIGN, name, when, problem, methods, "link or load a library that registers it")
        else:
            yield Finding(Lack.OPERATOR, name, when, "left out", methods, f"--op {name}", _option(root))


def _option(root: RootOperator) -> tuple[str, ...]:
    return ("--op", root.name.base_name if root.all_overloads else str(root.name))


def _scopes(model: ModelNeeds, runtime: RuntimeFacts) -> Iterator[Finding]:
    there = runtime.selection.scopes
    if Scope.ALL not in there:
        for scope in sorted(implied_scopes([model]) - set(there)):
            problem = f"kernels of {scope} tensors left out"
            yield Finding(Lack.SCOPE, scope, When.RUN, problem, (), f"--scope {scope}", ("--scope", scope))


def _loading(model: ModelNeeds, demands: ModelDemands, can: Capabilities) -> Iterator[Finding]:
    if model.format not in LOADABLE[can.interpreter]:
        remedy = "--interpreter full" if model.format == "torchscript" else "a slim wheel loads it (opsieve build)"
        option = ("--interpreter", "full") if model.format == "torchscript" else ()
        problem = f"the {can.interpreter} interpreter does not load it"
        yield Finding(Lack.FORMAT, model.format, When.LOAD, problem, remedy=remedy, option=option)
        return
    for what, version, supported in (
        ("bytecode", demands.bytecode, can.bytecode),
        ("file format", demands.file_format, can.file_format),
    ):
        if version is not None and supported is not None and not supported[0] <= version <= supported[1]:
            yield _version(what, version, supported, can)


def _version(what: str, version: int, supported: Range, can: Capabilities) -> Finding:
    oldest, newest = supported
    if version > newest:
        remedy = "build from a newer PyTorch, or save the model with an older one"
        if what == "bytecode":
            remedy = f"torch.jit.mobile._backport_for_mobile(FILE, OUT, {newest}), or a newer PyTorch"
    else:
        remedy = "save the model again with a newer PyTorch"
    problem = f"PyTorch {can.version} loads {oldest} to {newest}"
    return Finding(Lack.VERSION, f"{what} {version}", When.LOAD, problem, remedy=remedy)


def _classes(model: ModelNeeds, can: Capabilities) -> Iterator[Finding]:
    for name in model.custom_classes:
        if not can.may_have_class(name.rpartition(".")[2]):
            remedy = "build with this model among the MODELs"
            yield Finding(Lack.CLASS, name, When.LOAD, "no linked source registers it", (), remedy, (model.path,))


def _dtypes(demands: ModelDemands, can: Capabilities) -> Iterator[Finding]:
    if can.dtypes is None:
        return
    together = ",".join(sorted({*can.dtypes, *demands.dtypes}))
    for name in sorted(demands.dtypes - set(can.dtypes)):
        problem = f"kernels keep only {', '.join(can.dtypes)}"
        yield Finding(Lack.DTYPE, name, When.RUN, problem, (), f"--dtypes {together}", ("--dtypes", together))


def _notes(model: ModelNeeds, runtime: RuntimeFacts) -> Iterator[str]:
    built_for = {(known.path, known.fingerprint) for known in runtime.selection.models}
    same_contents = any(fingerprint == model.fingerprint for _, fingerprint in built_for)
    if not same_contents and any(path == model.path for path, _ in built_for):
        yield "The model has changed since the runtime was built for it."
    unsure = [root.name.base_name for root in model.roots if root.all_overloads]
    if unsure:
        yield f"Which overload of {', '.join(unsure[:3])} is called is not known; one that is kept may be another."
    can = runtime.capabilities
    if can is not None and can.policy is Policy.TRACED and not same_contents:
        yield (
            "The runtime keeps only the operators that were named for it. What else those call inside was left out, "
            "and raises an error that names it when it is reached."
        )
