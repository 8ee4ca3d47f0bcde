"""The operator graph of the PyTorch that is installed."""

from __future__ import annotations

from pathlib import Path

from opsieve.errors import GroundTruthMismatch, UnsupportedLibrary
from opsieve.graph.cache import cache_folder, cached_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.truth import compare_registrations, read_truth
from opsieve.installed import TorchInstall, install_at
from opsieve.progress import SILENT, Progress

LIBRARY = "libtorch_cpu.so"
TESTED_VERSION = "2.13.0"
"""The version whose ground truth the tests check. Any other is checked on the user's machine before it is used."""

_SAME_KEYS = (
    "CPU",
    "CompositeExplicitAutogradNonFunctional",
    "QuantizedCPU",
    "SparseCPU",
    "Autograd",
    "ADInplaceOrView",
)


def library_install(library: Path, python: Path | None = None) -> TorchInstall:
    """The PyTorch package that a library lies in. Raises UnsupportedLibrary if it lies in none: nothing could then be
    checked."""
    package = library.resolve().parent.parent
    if not (package / "version.py").is_file():
        raise UnsupportedLibrary(
            "this library is not part of a PyTorch package",
            where=library,
            expected=f"a library in the folder torch/lib, such as {LIBRARY}",
        )
    return install_at(package, python)


def load_op_graph(
    install: TorchInstall, progress: Progress = SILENT, *, rebuild: bool = False, library: Path | None = None
) -> OpGraph:
    """The graph of an installation's `libtorch_cpu.so`, or of another of its libraries.

    Raises UnsupportedLibrary or, for a version that was not tested, GroundTruthMismatch when the graph disagrees with
    what that PyTorch says of itself.
    """
    library = library or install.library(LIBRARY)
    if not library.is_file():
        raise UnsupportedLibrary("this PyTorch has no such library", where=library)
    graph = cached_op_graph(library, progress, rebuild=rebuild)
    if install.version.partition("+")[0] != TESTED_VERSION:
        _check_once(install, graph, progress)
    return graph


def _check_once(install: TorchInstall, graph: OpGraph, progress: Progress) -> None:
    mark = cache_folder() / "graphs" / f"{graph.build_id}.checked"
    if mark.exists():
        return
    with progress.stage("checking against this PyTorch") as advance:
        require_truth(install, graph)
        advance(1)
    _touch(mark)


def require_truth(install: TorchInstall, graph: OpGraph) -> None:
    """Raise GroundTruthMismatch unless every registration that this PyTorch reports is in the graph."""
    differences = compare_registrations(graph.registrations, read_truth(install))
    wrong = [difference for difference in differences if difference.key in _SAME_KEYS and difference.missing]
    if wrong:
        worst = wrong[0]
        raise GroundTruthMismatch(
            f"PyTorch {install.version} registers {len(worst.missing)} {worst.key} kernels that were not found in its "
            f"library, {worst.missing[0]} for one",
            where=install.library(LIBRARY),
            remedy=f"use PyTorch {TESTED_VERSION}, or report this version",
        )


def _touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
