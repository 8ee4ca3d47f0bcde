"""Holding observed dispatches against a graph: what lies outside it, and how much larger it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from opsieve.graph.dependencies import Dependencies, find_dependencies
from opsieve.graph.dispatcher_dump import Source
from opsieve.graph.framework import framework_operators
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import AUTOGRAD, Scope
from opsieve.graph.truth import Truth, source_files_in
from tests.functional.truth.observations import Edge, Observations

# What an edge needs -> the scope that promises it. Lazy views, autocast and grad mode are promised by every scope.
_SCOPES: Mapping[str, Scope] = {
    "sparse": Scope.SPARSE,
    "quantized": Scope.QUANTIZED,
    "mkldnn": Scope.MKLDNN,
    "nested": Scope.NESTED,
    "backward": Scope.AUTOGRAD,
}
_ALWAYS_KEPT = {str(name) for name, _ in framework_operators()}
_EVERY_SCOPE = {"conjugate", "negative", "zerotensor", "autocast", "grad"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One mode's observations against one graph. An edge is counted once, whatever the keys it was seen with."""

    mode: str
    calls: int
    operators: int
    edges: int
    outside: tuple[Edge, ...]
    """Edges that the graph does not have within the scope that covers them: each one is a fault of the graph."""

    kept_anyway: tuple[Edge, ...]
    """Edges that the graph does not have either, to operators that every runtime keeps (opsieve.graph.framework)."""

    not_in_library: tuple[str, ...]
    """Operators left out, because their code is Python or in another library of the package."""

    static_edges: int
    """Direct dependencies, in the scopes of the mode, of all operators that were seen to dispatch something."""

    kernel_edges: int
    """The same without the autograd wrappers, which all share some fifty dependencies (anomaly mode, saved tensors)."""

    @property
    def precision(self) -> float:
        """Static edges of kernels per observed edge of the same parents: 1 is perfect."""
        return self.kernel_edges / self.edges


class Judge:
    """Judges observations by one graph; computes each combination of scopes once."""

    def __init__(self, graph: OpGraph, library: Path, truth: Truth) -> None:
        self._graph = graph
        self._truth = truth
        self._elsewhere = _not_in_library(library, truth)
        self._python_meta = {
            r.operator for r in truth.registrations if r.key == "Meta" and r.source is Source.PYTHON and r.active
        }
        kernels = tuple(r for r in graph.all_registrations if r.key not in AUTOGRAD)
        self._full = _Scoped(graph)
        self._kernels = _Scoped(replace(graph, all_registrations=kernels))

    def judge(self, observations: Observations) -> Verdict:
        """Compare everything that was observed, apart from what the library cannot have."""
        elsewhere = {name for name in observations.operators if self._is_elsewhere(name)}
        # An operator that dispatches itself adds nothing to what is needed.
        checked = [
            e
            for e in observations.edges
            if e.parent != e.child and not {e.parent, e.child} & elsewhere and not self._is_pythons(e)
        ]
        missing = sorted(edge for edge in checked if not self._holds(edge))
        return Verdict(
            observations.mode,
            observations.calls,
            len(observations.operators),
            len({(edge.parent, edge.child) for edge in checked}),
            tuple(edge for edge in missing if edge.child not in _ALWAYS_KEPT),
            tuple(edge for edge in missing if edge.child in _ALWAYS_KEPT),
            tuple(sorted(elsewhere)),
            _static_edges(self._full, checked),
            _static_edges(self._kernels, checked),
        )

    def unknown(self, observations: Observations) -> set[str]:
        """Observed operators that the graph does not know, apart from those that the library cannot have."""
        return {n for n in observations.operators if n not in self._graph and not self._is_elsewhere(n)}

    def _is_elsewhere(self, operator: str) -> bool:
        # Libraries made in Python during a run (torch.library) are unknown to the truth.
        return operator not in self._truth.operators or operator in self._elsewhere

    def _is_pythons(self, edge: Edge) -> bool:
        # Kernels for zero tensors find out the shape by a redispatch to Meta, where most kernels are Python's.
        return "zerotensor" in edge.needs and edge.parent in self._python_meta

    def _holds(self, edge: Edge) -> bool:
        found = self._full.within(_scopes(edge.needs))
        known = edge.parent in self._graph and edge.child in self._graph
        return known and (edge.child in found.direct(edge.parent) or edge.child in found.dependencies.always)


class _Scoped:
    """The dependencies of one graph, by scopes."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self.within: Callable[[frozenset[Scope]], _Direct] = cache(lambda s: _Direct(find_dependencies(graph, s)))


class _Direct:
    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self.direct: Callable[[str], frozenset[str]] = cache(dependencies.direct)


def _static_edges(scoped: _Scoped, edges: list[Edge]) -> int:
    scopes: dict[str, frozenset[Scope]] = defaultdict(frozenset)
    for edge in edges:
        scopes[edge.parent] |= _scopes(edge.needs)
    known = {parent: found for parent, found in scopes.items() if parent in scoped.graph}
    return sum(len(scoped.within(found).direct(parent)) for parent, found in known.items())


def _not_in_library(library: Path, truth: Truth) -> frozenset[str]:
    """Operators defined in Python, and those whose every kernel comes from another library of the package."""
    files = {*source_files_in(library, truth), ""}
    kernels = {r.operator for r in truth.registrations}
    here = {r.operator for r in truth.registrations if r.source is Source.CPP and r.file in files}
    python = {name for name, source in truth.operators.items() if source is Source.PYTHON}
    return frozenset(python | (kernels - here))


def _scopes(needs: tuple[str, ...]) -> frozenset[Scope]:
    # A key that no scope names (Meta, FuncTorchBatched, ...) is promised by `all` only.
    return frozenset({Scope.INFERENCE, *(_SCOPES.get(need, Scope.ALL) for need in needs if need not in _EVERY_SCOPE)})
