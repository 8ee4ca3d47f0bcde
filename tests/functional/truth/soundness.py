"""Holding observed dispatches against a graph: what lies outside it, and how much larger it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.graph.dependencies import Dependencies, find_dependencies
from opsieve.graph.dispatcher_dump import Source
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
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

    not_in_library: tuple[str, ...]
    """Operators left out, because their code is Python or in another library of the package."""

    static_edges: int
    """Direct dependencies, in the scopes of the mode, of all operators that were seen to dispatch something."""

    @property
    def precision(self) -> float:
        """Static edges per observed edge of the same parents: 1 is perfect."""
        return self.static_edges / self.edges


class Judge:
    """Judges observations by one graph; computes each combination of scopes once."""

    def __init__(self, graph: OpGraph, library: Path, truth: Truth) -> None:
        self._graph = graph
        self._truth = truth
        self._elsewhere = _not_in_library(library, truth)
        self._dependencies: dict[frozenset[Scope], _Cached] = {}

    def judge(self, observations: Observations) -> Verdict:
        """Compare everything that was observed, apart from what the library cannot have."""
        elsewhere = {name for name in observations.operators if self._is_elsewhere(name)}
        # An operator that dispatches itself adds nothing to what is needed.
        checked = [e for e in observations.edges if e.parent != e.child and not {e.parent, e.child} & elsewhere]
        outside = tuple(sorted(edge for edge in checked if not self._holds(edge)))
        return Verdict(
            observations.mode,
            observations.calls,
            len(observations.operators),
            len({(edge.parent, edge.child) for edge in checked}),
            outside,
            tuple(sorted(elsewhere)),
            self._static_edges(checked),
        )

    def unknown(self, observations: Observations) -> set[str]:
        """Observed operators that the graph does not know, apart from those that the library cannot have."""
        return {n for n in observations.operators if n not in self._graph and not self._is_elsewhere(n)}

    def _is_elsewhere(self, operator: str) -> bool:
        # Libraries made in Python during a run (torch.library) are unknown to the truth.
        return operator not in self._truth.operators or operator in self._elsewhere

    def _holds(self, edge: Edge) -> bool:
        found = self._of(_scopes(edge.needs))
        known = edge.parent in self._graph and edge.child in self._graph
        return known and (edge.child in found.direct(edge.parent) or edge.child in found.dependencies.always)

    def _static_edges(self, edges: list[Edge]) -> int:
        scopes: dict[str, set[Scope]] = defaultdict(set)
        for edge in edges:
            if edge.parent in self._graph:
                scopes[edge.parent] |= _scopes(edge.needs)
        return sum(len(self._of(frozenset(found)).direct(parent)) for parent, found in scopes.items())

    def _of(self, scopes: frozenset[Scope]) -> _Cached:
        if scopes not in self._dependencies:
            self._dependencies[scopes] = _Cached(find_dependencies(self._graph, scopes))
        return self._dependencies[scopes]


class _Cached:
    def __init__(self, dependencies: Dependencies) -> None:
        self.dependencies = dependencies
        self._direct: dict[str, frozenset[str]] = {}

    def direct(self, operator: str) -> frozenset[str]:
        if operator not in self._direct:
            self._direct[operator] = self.dependencies.direct(operator)
        return self._direct[operator]


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
