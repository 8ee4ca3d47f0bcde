"""The main job: a slim runtime for a selection, cut from the installed PyTorch."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import ElfFile
from opsieve.emit.selected_operators import selected_operators_yaml
from opsieve.files import refuse_existing, replacing_file
from opsieve.graph.load import LIBRARY, load_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
from opsieve.installed import TorchInstall
from opsieve.models.needs import ModelNeeds
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.wheel.keep import KeptFunctions, kept_functions
from opsieve.runtimes.wheel.library.kept import KeptCode
from opsieve.runtimes.wheel.library.report import SlimReport
from opsieve.runtimes.wheel.library.slim import SlimPlan, slim_library
from opsieve.runtimes.wheel.package import PackageReport, assemble
from opsieve.runtimes.wheel.package_plan import plan_package
from opsieve.runtimes.wheel.removed import removed_functions
from opsieve.runtimes.wheel.roots import export_roots, loaded_libraries, loader_roots, neighbours
from opsieve.select.choose import ExtraOperator, choose
from opsieve.select.selection import Selection
from opsieve.select.store import selection_to_json

SELECTION = "selection.json"
SELECTED_OPERATORS = "selected_operators.yaml"
REPORT = "report.json"


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to build a runtime for."""

    models: Sequence[ModelNeeds]
    extra: Sequence[ExtraOperator] = ()
    scopes: frozenset[Scope] = frozenset({Scope.INFERENCE})
    consumers: Sequence[Path] = ()
    """Programs and libraries, beside PyTorch's own, that call into `libtorch_cpu.so`."""

    with_headers: bool = False
    wheel: bool = True


@dataclass(frozen=True)
class Plan:
    """Everything decided, nothing written."""

    install: TorchInstall
    request: BuildRequest
    selection: Selection
    kept: KeptFunctions


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What `build` wrote."""

    selection: Selection
    package: PackageReport
    libraries: Mapping[str, SlimReport]
    """By file name."""


def plan_build(install: TorchInstall, request: BuildRequest, progress: Progress = SILENT) -> Plan:
    """Decide which operators and functions stay."""
    with ThreadPoolExecutor(1) as background:
        # A process that imports torch takes as long as reading the graph: let them run side by side.
        loaded = background.submit(loaded_libraries, install)
        graph = load_op_graph(install, progress)
        with progress.stage("selecting operators") as advance:
            selection, _ = choose(graph, install.version, request.models, request.extra, request.scopes)
            kept = keep_for(install, graph, selection, request.consumers, loaded.result)
            advance(1)
    return Plan(install, request, selection, kept)


def keep_for(
    install: TorchInstall,
    graph: OpGraph,
    selection: Selection,
    consumers: Sequence[Path],
    loaded: Callable[[], tuple[Path, ...]],
) -> KeptFunctions:
    """The functions of `libtorch_cpu.so` that stay for a selection."""
    elf = ElfFile(install.library(LIBRARY))
    others = [path for path in (*neighbours(install, loaded()), *consumers) if path.name != LIBRARY]
    outside = np.concatenate([loader_roots(elf, graph.code), export_roots(elf, graph.code, others)])
    return kept_functions(graph, selection.names, frozenset(Scope(name) for name in selection.scopes), outside)


def build(plan: Plan, out: Path, *, force: bool = False, progress: Progress = SILENT) -> BuildReport:
    """Write the slim runtime into `out`: `python/`, the wheel, and three files that describe them.

    `selection.json` says which operators stay and why, `selected_operators.yaml` the same for PyTorch's own tools,
    `report.json` where the bytes are and which files were dropped for which reason. Raises OutputExists when
    something is there and `force` is not given.
    """
    for name in (SELECTION, SELECTED_OPERATORS, REPORT):
        refuse_existing(out / name, force)
    with tempfile.TemporaryDirectory(prefix="opsieve-") as folder:
        libraries = slim_libraries(plan, Path(folder), progress)
        replacements = {f"torch/lib/{name}": Path(folder) / name for name in libraries}
        package = assemble(
            plan.install,
            replacements,
            out,
            with_headers=plan.request.with_headers,
            wheel=plan.request.wheel,
            force=force,
            progress=progress,
        )
    _write(out / SELECTION, selection_to_json(plan.selection), force)
    _write(out / SELECTED_OPERATORS, selected_operators_yaml(plan.selection).encode(), force)
    _write(out / REPORT, _report_json(package, libraries), force)
    return BuildReport(plan.selection, package, libraries)


def slim_libraries(plan: Plan, folder: Path, progress: Progress = SILENT) -> dict[str, SlimReport]:
    """Write the slim forms of PyTorch's libraries into `folder`; those that would not get smaller are left out."""
    reports = {LIBRARY: _slim_main(plan, folder / LIBRARY, progress)}
    for kept in plan_package(plan.install, {}, with_headers=plan.request.with_headers).kept:
        path = plan.install.site / kept
        if path.parent != plan.install.library("") or ".so" not in path.name or path.name == LIBRARY:
            continue
        report = slim_library(ElfFile(path), SlimPlan(), folder / path.name, progress=progress)
        if report.file_size < report.stock_size:
            reports[path.name] = report
    return reports


def _slim_main(plan: Plan, out: Path, progress: Progress) -> SlimReport:
    elf = ElfFile(plan.install.library(LIBRARY))
    code = plan.kept.graph.code
    errors, redirects, removed = removed_functions(elf, plan.kept)
    slim = SlimPlan(
        code=KeptCode.of(code.functions, plan.kept.kept),
        references=code.references,
        errors=errors,
        redirects=redirects,
        removed=removed,
    )
    return slim_library(elf, slim, out, progress=progress)


def _report_json(package: PackageReport, libraries: Mapping[str, SlimReport]) -> bytes:
    import msgspec

    document = {
        "version": package.version,
        "wheel": package.wheel.name if package.wheel else None,
        "stock_bytes": package.stock_bytes,
        "kept_bytes": package.kept_bytes,
        "libraries": libraries,
        "dropped": package.dropped,
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"


def _write(path: Path, contents: bytes, force: bool) -> None:
    with replacing_file(path, force=force) as temporary:
        temporary.write_bytes(contents)
