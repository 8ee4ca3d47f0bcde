"""The C++ functions through which one operator comes to call another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from opsieve.code.elf import ElfFile
from opsieve.code.graph import successor_positions
from opsieve.graph.dependencies import kernels_in_scope
from opsieve.graph.landmarks import node_flags
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope


def code_path(graph: OpGraph, source: str, target: str, scopes: frozenset[Scope]) -> tuple[int, ...]:
    """Nodes of a shortest way from a kernel of `source` to a dispatch of `target`; empty if there is none."""
    code = graph.code
    stops = node_flags(list(graph.invocations.entries), code.node_count)
    ends = {function for function, operator in graph.invocations.entries.items() if operator == target}
    ends.update(function for function, operator in graph.invocations.lookups if operator == target)
    parent = np.full(code.node_count, -1, np.int64)
    frontier = np.unique(np.array(kernels_in_scope(graph, source, scopes), np.int64))
    parent[frontier] = frontier
    while len(frontier):
        reached = ends.intersection(frontier.tolist())
        if reached:
            return _back(parent, min(reached))
        frontier = frontier[~stops[frontier]]
        origin = np.repeat(frontier, code.first_edge[frontier + 1] - code.first_edge[frontier])
        found = code.targets[successor_positions(frontier, code.first_edge)].astype(np.int64)
        new = parent[found] < 0
        parent[found[new]] = origin[new]
        frontier = np.unique(found[new])
    return ()


def _back(parent: np.ndarray, node: int) -> tuple[int, ...]:
    path = [node]
    while parent[path[-1]] != path[-1]:
        path.append(int(parent[path[-1]]))
    return tuple(reversed(path))


def node_names(elf: ElfFile, graph: OpGraph, nodes: Iterable[int]) -> Iterator[str]:
    """The demangled names of nodes; data without a symbol is named by its address."""
    functions, data = graph.code.functions, graph.code.data
    for node in nodes:
        offset = functions.names[node] if node < len(functions) else data.names[node - len(functions)]
        if offset >= 0:
            yield _demangle(elf.name(".strtab", int(offset)).decode("utf-8", "replace"))
        elif node < len(functions):
            yield f"code without a symbol at {functions.starts[node]:#x}"
        else:
            yield f"data without a symbol at {data.starts[node - len(functions)]:#x}"


@lru_cache(maxsize=65536)
def _demangle(name: str) -> str:
    import pycxxfilt

    return pycxxfilt.demangle(name) or name
