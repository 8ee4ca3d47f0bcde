"""Which operators need which, and what stands between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from opsieve.code.elf import Int64s
from opsieve.runtimes.source.link.account.live_graph import LiveGraph
from opsieve.runtimes.source.link.account.object_file import Bools


@dataclass(frozen=True, slots=True)
class Path:
    """A shortest way to an operator's registration, over live sections."""

    source: int
    """The node of the operator that needs the other, or the root for the runtime itself."""

    target: int
    """The node of the operator."""

    between: tuple[int, ...]
    """Nodes, those of the two operators not among them."""


@dataclass(frozen=True)
class Needs:
    """The direct needs of a program: those of the runtime itself, and those of the operators."""

    paths: tuple[Path, ...]
    core: Bools
    """Of each node: whether the runtime itself needs it, whatever operators there are."""


def find_needs(graph: LiveGraph) -> Needs:
    """Who needs which operator directly: over code that no third operator's registration stands in front of.

    What the runtime itself reaches is there anyway, so a way through it makes no operator need another one.
    """
    from_operator = graph.is_operator(graph.sources)
    to_operator = graph.is_operator(graph.targets)
    asked = [graph.node(operator) for operator in graph.asked if operator in graph.operators]
    named = (graph.sources == graph.root) & np.isin(graph.targets, asked)
    own = _Search(graph.matrix(~from_operator & ~named), graph)
    core = np.zeros(graph.count, bool)
    core[own.order(graph.root)] = True
    core &= ~graph.is_operator(np.arange(graph.count))
    paths = list(own.paths(graph.root))
    search = _Search(_doubled(graph, ~core[graph.sources] & (to_operator | ~core[graph.targets])), graph)
    for place in range(len(graph.operators)):
        paths += search.paths(graph.first_operator + place, graph.count + place)
    return Needs(tuple(paths), core)


def _doubled(graph: LiveGraph, chosen: Bools) -> csr_matrix:
    """The chosen edges; those that leave an operator leave a second node of it, which no edge leads to."""
    sources, targets = graph.sources[chosen], graph.targets[chosen]
    leaving = graph.is_operator(sources)
    sources = np.where(leaving, sources - graph.first_operator + graph.count, sources)
    count = graph.count + len(graph.operators)
    return csr_matrix((np.ones(len(sources)), (sources, targets)), (count, count))


class _Search:
    def __init__(self, matrix: csr_matrix, graph: LiveGraph) -> None:
        self._matrix, self._graph = matrix, graph

    def order(self, start: int) -> Int64s:
        """All that can be reached."""
        return breadth_first_order(self._matrix, start, return_predecessors=False).astype(np.int64)

    def paths(self, source: int, start: int | None = None) -> Iterator[Path]:
        """A way to each operator that `source` needs; the search starts at `start`."""
        begin = source if start is None else start
        order, before = breadth_first_order(self._matrix, begin)
        for target in order[self._graph.is_operator(order.astype(np.int64))].tolist():
            if target == source:
                continue
            between, node = [], int(before[target])
            while node != begin:
                between.append(node)
                node = int(before[node])
            yield Path(source, target, tuple(reversed(between)))


def reachable(graph: LiveGraph, core: Bools) -> dict[int, Int64s]:
    """Of each operator's node: the bytes of all it leads to, further operators included, the runtime itself not."""
    matrix = graph.matrix(~core[graph.sources] & ~core[graph.targets])
    sums = {}
    for node in range(graph.first_operator, graph.first_operator + len(graph.operators)):
        order = breadth_first_order(matrix, node, return_predecessors=False)
        sums[node] = graph.weights[order].sum(axis=0)
    return sums
