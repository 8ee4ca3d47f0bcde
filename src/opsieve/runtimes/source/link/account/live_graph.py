"""The live part of a program's graph, with each operator as one node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from opsieve.code.elf import SHF_EXECINSTR, SHT_NOBITS, ElfFile, Int64s
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.names import TABLE
from opsieve.runtimes.source.association.sites import ROOT_KINDS, Site, SiteKind
from opsieve.runtimes.source.link.account.marking import Live
from opsieve.runtimes.source.link.account.merging import find_merged
from opsieve.runtimes.source.link.account.object_file import Bools
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph

_SHF_WRITE = 1
_HANDLERS = rb"\.gcc_except_table[^\0]*"
CODE, CONSTANTS, DATA, UNWINDING = range(4)
"""Columns of `LiveGraph.weights`."""


@dataclass(frozen=True)
class LiveGraph:
    """Nodes: first the live sections, then the operators, then what sections share, last the root.

    An operator's node stands for the sections of its own registrations, whose nodes have neither edges nor weight.
    Everything else can be reached from the root.
    """

    sections: Int64s
    """Of each section's node, its number in the program."""

    operators: tuple[OperatorName, ...]
    entries: Mapping[OperatorName, tuple[Site, ...]]
    """The live registrations of each operator: itself and its kernels."""

    asked: frozenset[OperatorName]
    """The operators that the linker was told to keep."""

    sources: Int64s
    targets: Int64s
    weights: Int64s
    """Bytes of each node; a column for each kind."""

    by_object: Int64s
    """The same by object."""

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.weights)

    @property
    def first_operator(self) -> int:
        """The node of the first operator."""
        return len(self.sections)

    @property
    def root(self) -> int:
        """The node in front of all roots."""
        return self.count - 1

    def is_operator(self, nodes: Int64s) -> Bools:
        """Which of the nodes are operators."""
        return (nodes >= self.first_operator) & (nodes < self.first_operator + len(self.operators))

    def node(self, operator: OperatorName) -> int:
        """The node of an operator."""
        return self.first_operator + self.operators.index(operator)

    def matrix(self, chosen: Bools) -> csr_matrix:
        """The chosen edges as a matrix."""
        sources, targets = self.sources[chosen], self.targets[chosen]
        return csr_matrix((np.ones(len(sources)), (sources, targets)), (self.count, self.count))


def live_graph(
    graph: ProgramGraph, live: Live, program: ElfFile, sites: Mapping[str, Site], asked: Iterable[str]
) -> LiveGraph:
    """Reduce a program to what lives. `sites` are the registrations by symbol, `asked` the symbols to keep."""
    number_of = np.full(int(graph.first[-1]) + 1, -1)
    number_of[live.order] = np.arange(len(live.order))
    found = _registrations(graph, live, sites)
    operators = tuple(sorted({site.operator for site in found.values() if site.kind in ROOT_KINDS}))
    to_node = number_of.copy()
    for section, site in found.items():
        if site.kind in ROOT_KINDS:
            to_node[section] = len(live.order) + operators.index(site.operator)
    weights = _weights(graph, live.order)
    merged = find_merged(graph, live, weights, program)
    weights[number_of[merged.emptied]] = 0
    first_part = len(live.order) + len(operators)
    root = first_part + len(merged.weights)
    kept = (number_of[graph.sources] >= 0) & (number_of[graph.targets] >= 0)
    ends = (to_node[graph.sources[kept]], to_node[merged.users], np.full(len(live.roots), root))
    sources = np.concatenate(ends)
    targets = np.concatenate([to_node[graph.targets[kept]], first_part + merged.parts, to_node[live.roots]])
    sources, targets = np.divmod(np.unique(sources * (root + 1) + targets), root + 1)
    entries: dict[OperatorName, list[Site]] = {}
    for site in found.values():
        entries.setdefault(site.operator, []).append(site)
    return LiveGraph(
        live.order,
        operators,
        {operator: tuple(sorted(of_one)) for operator, of_one in entries.items()},
        frozenset(sites[symbol].operator for symbol in asked if symbol in sites),
        sources,
        targets,
        _by_node(
            np.concatenate([weights, merged.weights]),
            np.concatenate([to_node[live.order], first_part + np.arange(len(merged.weights))]),
            root + 1,
        ),
        _by_node(
            np.concatenate([weights, merged.weights]),
            np.concatenate([np.searchsorted(graph.first, live.order, "right") - 1, merged.objects]),
            len(graph.objects),
        ),
    )


def _registrations(graph: ProgramGraph, live: Live, sites: Mapping[str, Site]) -> dict[int, Site]:
    """Live section -> what it registers."""
    found: dict[int, Site] = {}
    for part, base in zip(graph.objects, graph.first.tolist(), strict=False):
        tables = part.named(TABLE.encode())
        if not len(tables):
            continue
        symbols = np.flatnonzero(np.isin(part.symbol_section, tables) & (part.symbols["name"] > 0))
        names = part.symbol_names(symbols)
        for name, section in zip(names, part.symbol_section[symbols].tolist(), strict=True):
            site = sites.get(name.decode("utf-8", "replace"))
            if site is not None and live.parents[base + section] >= 0:
                found[base + section] = site
    return found


def _weights(graph: ProgramGraph, sections: Int64s) -> Int64s:
    flags, size = graph.column("flags")[sections], graph.column("size")[sections]
    size[graph.column("type")[sections] == SHT_NOBITS] = 0
    handlers = np.zeros(int(graph.first[-1]), bool)
    for part, base in zip(graph.objects, graph.first.tolist(), strict=False):
        handlers[base + part.named(_HANDLERS)] = True
    kind = np.where(flags & SHF_EXECINSTR, CODE, np.where(flags & _SHF_WRITE, DATA, CONSTANTS))
    kind[handlers[sections]] = UNWINDING
    weights = np.zeros((len(sections), 4), np.int64)
    weights[np.arange(len(sections)), kind] = size
    weights[:, UNWINDING] += graph.frame_sizes[sections]
    return weights


def _by_node(weights: Int64s, nodes: Int64s, count: int) -> Int64s:
    sums = np.zeros((count, 4), np.int64)
    np.add.at(sums, nodes, weights)
    return sums


def kernels(sites: Iterable[Site]) -> tuple[str, ...]:
    """The dispatch keys of the kernels among registrations."""
    return tuple(sorted({site.key for site in sites if site.kind is SiteKind.KERNEL}))
