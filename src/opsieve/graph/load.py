"""The operator graph of the PyTorch that is installed."""

from __future__ import annotations

from pathlib import Path

from opsieve.errors import GroundTruthMismatch, UnsupportedLibrary
from opsieve.graph.cache import FORMAT, cache_folder, cached_op_graph
from opsieve.graph.dispatcher_dump import Kind, Source
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.truth import Truth, compare_registrations, read_truth, source_files_in
from opsieve.installed import TorchInstall, install_at
from opsieve.progress import SILENT, Progress

LIBRARY = "libtorch_cpu.so"
TESTED_VERSION = "2.13.0+cpu"
"""The version whose ground truth the tests check. Any other is checked on the user's machine before it is used."""

_CPU_SIDE = frozenset(
    {
        *("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional", "CompositeImplicitAutograd"),
        *("QuantizedCPU", "MkldnnCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU"),
        *("Autograd", "AutogradCPU", "AutogradOther", "AutogradNestedTensor", "ADInplaceOrView", "AutocastCPU"),
        *("BackendSelect", "Conjugate", "Negative", "ZeroTensor"),
    }
)
"""The keys whose kernels can run where there is no other device than the CPU."""


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
    if install.version != TESTED_VERSION:
        _check_once(install, library, graph, progress)
    return graph


def _check_once(install: TorchInstall, library: Path, graph: OpGraph, progress: Progress) -> None:
    mark = cache_folder() / "graphs" / f"{graph.build_id}-{FORMAT}.checked"
    if mark.exists():
        return
    with progress.stage("checking against this PyTorch") as advance:
        require_truth(install, library, graph)
        advance(1)
    _touch(mark)


def require_truth(install: TorchInstall, library: Path, graph: OpGraph) -> None:
    """Raise GroundTruthMismatch unless the graph has every kernel for the CPU that this PyTorch says `library`
    registers."""
    truth = read_truth(install)
    differences = compare_registrations(graph.registrations, truth, files=source_files_in(library, truth))
    missing = [(d.key, operator) for d in differences if d.key in _CPU_SIDE for operator in d.missing]
    problem = next((f"the {key} kernel of {operator}" for key, operator in (*missing, *_empty(graph, truth))), None)
    if problem is not None:
        raise GroundTruthMismatch(
            f"PyTorch {install.version} registers {problem}, and it was not found in the library",
            where=library,
            remedy=f"use PyTorch {TESTED_VERSION}, or report this version",
        )


def _empty(graph: OpGraph, truth: Truth) -> list[tuple[str, str]]:
    """(key, operator) where the graph has a registration and no kernel, and PyTorch has a kernel."""
    kernels = {(r.key, r.operator) for r in truth.registrations if r.kind is Kind.KERNEL and r.source is Source.CPP}
    return sorted(
        (key, operator)
        for operator, by_key in graph.registrations.items()
        for key in by_key.keys() & _CPU_SIDE
        if not by_key[key] and (key, operator) in kernels
    )


def _touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
