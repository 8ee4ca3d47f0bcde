"""Which operator needs which: reachability from kernels to the next dispatch, for all operators at once.

A needs B if some kernel of A that can run in the scope reaches B's dispatch without passing through another operator's
dispatch. Paths stop at dispatch entries, so their out-edges are cut; each operator becomes a node that points at its
kernels. Only what lies between a kernel and a dispatch matters, about 30,000 of 620,000 nodes; in these, strongly
connected components are merged and sets of operators are passed against the edges, one bit per operator.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opsieve.code.elf import Bytes, Int64s
from opsieve.code.graph import Nodes, compress, reachable
from opsieve.code.x86_64 import Flags
from opsieve.graph.landmarks import node_flags
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import AUTOGRAD, VIEW_FALLBACKS, Scope, selected_keys

Matrix = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Dependencies:
    """Direct dependencies of every operator within some scopes."""

    graph: OpGraph
    scopes: frozenset[Scope]
    needs: Matrix
    """`needs[a, b]`: operator number `a` may dispatch to operator number `b`. Nothing needs itself."""

    always: frozenset[str]
    """What any operator may need, whichever it is: through the fallbacks for lazy views, and through the virtual
    methods of the tensors of a scope."""

    def direct(self, operator: str) -> frozenset[str]:
        """The operators that `operator` itself may dispatch to, apart from `always`."""
        row = self.needs[self.graph.number(operator)]
        return frozenset(self.graph.operators[number] for number in np.flatnonzero(row))

    def closure(self, operators: Iterable[str]) -> frozenset[str]:
        """The operators, what may be needed always, and everything that these need."""
        parents = self.parents(operators)
        return frozenset(parents)

    def parents(self, operators: Iterable[str]) -> dict[str, str | None]:
        """The closure, breadth first: each operator with the one it was first reached from, None for a root."""
        names = self.graph.operators
        found: dict[int, int | None] = dict.fromkeys(
            self.graph.number(name) for name in sorted({*operators, *self.always})
        )
        frontier = list(found)
        while frontier:
            following = []
            for number in frontier:
                for needed in np.flatnonzero(self.needs[number]).tolist():
                    if needed not in found:
                        found[needed] = number
                        following.append(needed)
            frontier = following
        return {names[a]: None if b is None else names[b] for a, b in found.items()}


def find_dependencies(graph: OpGraph, scopes: frozenset[Scope]) -> Dependencies:
    """Compute the dependencies of all operators within the scopes."""
    kernels = [kernels_in_scope(graph, operator, scopes) for operator in graph.operators]
    anywhere = _kernels_of_anything(graph, scopes)
    rows = _propagate(graph, [*kernels, anywhere], follow_backward=bool(scopes & {Scope.AUTOGRAD, Scope.ALL}))
    needs = rows[:-1].copy()
    np.fill_diagonal(needs, False)
    always = frozenset(graph.operators[number] for number in np.flatnonzero(rows[-1]))
    return Dependencies(graph, scopes, needs, always)


def kernels_in_scope(graph: OpGraph, operator: str, scopes: frozenset[Scope]) -> tuple[int, ...]:
    """The kernels of an operator that can run in the scopes, autograd wrappers included."""
    registered = graph.registrations.get(operator, {})
    keys = sorted(selected_keys(registered, scopes))
    return tuple(dict.fromkeys(kernel for key in keys for kernel in registered[key]))


def _kernels_of_anything(graph: OpGraph, scopes: frozenset[Scope]) -> tuple[int, ...]:
    fallbacks = graph.fallbacks
    keys = fallbacks.keys() if Scope.ALL in scopes else (*VIEW_FALLBACKS, *AUTOGRAD)
    tables = graph.landmarks.object_tables
    wanted = tables.keys() if Scope.ALL in scopes else scopes & tables.keys()
    starts = [kernel for key in keys for kernel in fallbacks.get(key, ())]
    return (*starts, *(node for scope in sorted(wanted) for node in tables[scope]))


def _propagate(graph: OpGraph, kernels: list[tuple[int, ...]], *, follow_backward: bool) -> Matrix:
    """For each list of kernels, the operators dispatched from it: flags [lists, operators]."""
    code, count = graph.code, graph.code.node_count
    sources = np.repeat(np.arange(count), np.diff(code.first_edge))
    targets = code.targets.astype(np.int64)
    entry_nodes, entry_operators = _dispatches(graph)
    blocked = node_flags([] if follow_backward else list(graph.landmarks.backward), count)
    stops = node_flags(list(graph.invocations.entries), count)
    open_edge = ~stops[sources] & ~blocked[sources] & ~blocked[targets]
    kernel_owner = np.repeat(np.arange(len(kernels)) + count, [len(found) for found in kernels])
    kernel_nodes = np.array([node for found in kernels for node in found], np.int64)
    sources = np.concatenate([sources[open_edge], kernel_owner])
    targets = np.concatenate([targets[open_edge], kernel_nodes])
    total = count + len(kernels)
    between = _between(sources, targets, kernel_nodes, entry_nodes, total)
    between[count:] = True
    number = np.cumsum(between) - 1
    inside = between[sources] & between[targets]
    component, first_edge, successors = _components(
        number[sources[inside]], number[targets[inside]], int(between.sum())
    )
    seeds = between[entry_nodes]
    sets = _collect(
        component[number[entry_nodes[seeds]]], entry_operators[seeds], len(graph.operators), first_edge, successors
    )
    rows = sets[component[number[count:]]]
    return np.unpackbits(rows, axis=1, bitorder="little", count=len(graph.operators)).astype(bool)


def _dispatches(graph: OpGraph) -> tuple[Int64s, Int64s]:
    """(function, operator number) of every place that dispatches."""
    pairs = [*graph.invocations.entries.items(), *graph.invocations.lookups]
    nodes = np.array([function for function, _ in pairs], np.int64)
    return nodes, np.array([graph.number(operator) for _, operator in pairs], np.int64)


def _between(sources: Int64s, targets: Int64s, starts: Int64s, ends: Int64s, count: int) -> Flags:
    """Nodes on some path from `starts` to `ends`."""
    forward = reachable(starts, *compress(sources, targets, count))
    both = forward[sources] & forward[targets]
    return forward & reachable(ends, *compress(targets[both], sources[both], count))


def _components(sources: Int64s, targets: Int64s, count: int) -> tuple[Int64s, Int64s, Nodes]:
    """Strongly connected components: the component of each node, and the compressed edges between components.

    Components are numbered so that every edge leads to a smaller number.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    matrix = coo_array((np.ones(len(sources), np.int8), (sources, targets)), shape=(count, count)).tocsr()
    found, labels = connected_components(matrix, directed=True, connection="strong")
    component = labels.astype(np.int64)
    first_edge, successors = compress(component[sources], component[targets], int(found))
    origin = np.repeat(np.arange(found), np.diff(first_edge))
    # scipy documents no order; its algorithm (Pearce) numbers components in topological order, one way or the other.
    if len(origin) and (origin < successors).all():
        component = found - 1 - component
        first_edge, successors = compress(found - 1 - origin, found - 1 - successors.astype(np.int64), int(found))
    elif not (origin > successors).all():
        raise AssertionError("strongly connected components are not in topological order")
    return component, first_edge, successors


def _collect(nodes: Int64s, operators: Int64s, width: int, first_edge: Int64s, successors: Nodes) -> Bytes:
    """Bit sets of the operators that each component reaches; a component's successors have smaller numbers."""
    count = len(first_edge) - 1
    sets = np.zeros((count, (width + 7) // 8), np.uint8)
    np.bitwise_or.at(sets, (nodes, operators >> 3), (1 << (operators & 7)).astype(np.uint8))
    edges = first_edge.tolist()
    for component in range(count):
        low, high = edges[component], edges[component + 1]
        if high - low == 1:
            sets[component] |= sets[successors[low]]
        elif high > low:
            sets[component] |= np.bitwise_or.reduce(sets[successors[low:high]], axis=0)
    return sets
