"""Which functions of a library stay for a selection.

Everything that can be reached from the roots stays. Three kinds of edges are cut, and each cut is backed by a stub that
raises, so that what lies behind can be left out without a silent fault:

* the dispatch entries (`at::_ops::X::call` and `::redispatch`) of operators that are not selected;
* from the code that registers kernels to the kernels' boxed and unboxed entries: those that a selected operator can
  run in the scopes come back as roots;
* the entries of Static Runtime's own operator table for operators that are not selected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Int64s
from opsieve.code.graph import compress
from opsieve.code.x86_64 import Flags
from opsieve.graph.dependencies import kernels_in_scope
from opsieve.graph.landmarks import node_flags
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope


@dataclass(frozen=True)
class KeptFunctions:
    """The part of a library that stays."""

    graph: OpGraph
    operators: frozenset[str]
    scopes: frozenset[Scope]
    kept: Flags
    """One flag per function."""

    cut: Int64s
    """Functions that are not entered although something that stays refers to them; they raise."""

    @property
    def code_size(self) -> int:
        """Bytes of code that stay."""
        functions = self.graph.code.functions
        return int((functions.ends - functions.starts)[self.kept].sum())


def kept_functions(
    graph: OpGraph, operators: frozenset[str], scopes: frozenset[Scope], outside: Int64s
) -> KeptFunctions:
    """Follow all edges but the cut ones from the kernels of `operators` and the nodes `outside`."""
    code = graph.code
    count, functions = code.node_count, len(code.functions)
    stops = _stops(graph, operators)
    sources = np.repeat(np.arange(count), np.diff(code.first_edge))
    targets = code.targets.astype(np.int64)
    registering = node_flags([*graph.initialisers, *graph.landmarks.registrars], count)
    wrappers = node_flags(graph.landmarks.wrappers, count)
    open_edge = ~(registering[sources] & wrappers[targets]) & ~stops[sources] & ~stops[targets]
    first_edge, successors = compress(sources[open_edge], targets[open_edge], count)
    roots = np.concatenate([outside, _kernel_roots(graph, operators, scopes)])
    seen = code.reachable(roots[~stops[roots]], first_edge, successors)
    kept = seen[:functions]
    cut = np.flatnonzero((stops | wrappers)[:functions] & ~kept)
    return KeptFunctions(graph, operators, scopes, kept, cut)


def _stops(graph: OpGraph, operators: frozenset[str]) -> Flags:
    """Dispatch entries and Static Runtime entries of everything that is not selected."""
    entries = [function for function, operator in graph.invocations.entries.items() if operator not in operators]
    macros = {operator.partition(".")[0].replace("::", "_") for operator in operators}
    table = [function for function, macro in graph.landmarks.static_runtime.items() if macro not in macros]
    return node_flags([*entries, *table], graph.code.node_count)


def _kernel_roots(graph: OpGraph, operators: frozenset[str], scopes: frozenset[Scope]) -> Int64s:
    """Kernels are reached through the dispatcher, which the cuts hide: those of selected operators, all fallbacks."""
    kernels = [kernel for operator in operators for kernel in kernels_in_scope(graph, operator, scopes)]
    for found in graph.fallbacks.values():
        kernels.extend(found)
    return np.unique(np.array(kernels, np.int64))
