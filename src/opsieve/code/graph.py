"""The code graph: functions and data of one library, and what refers to what.

An edge says: whoever can run, read or call the first can get hold of the second. Indirect and virtual calls need no
rule of their own, because a call can only reach what some instruction or some pointer in data names: taking the
address of a table reaches the table, and its pointers reach every function in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opsieve.code.arrays import distinct
from opsieve.code.data import DataTable, read_data
from opsieve.code.elf import ElfFile, Int64s
from opsieve.code.functions import FunctionTable, read_functions, require_symbols
from opsieve.code.links import Links, read_links
from opsieve.code.plt import Plt, read_plt, unknown_entries
from opsieve.code.references import References, read_references, require_processor
from opsieve.code.x86_64 import Flags
from opsieve.errors import UnsupportedLibrary
from opsieve.progress import SILENT, Progress

Nodes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class CodeGraph:
    """Node `i` is function `i`; node `len(functions) + j` is data object `j`."""

    build_id: str
    functions: FunctionTable
    data: DataTable
    plt: Plt
    links: Links
    references: References
    first_edge: Int64s
    """`targets[first_edge[n] : first_edge[n + 1]]` are the successors of node `n`."""

    targets: Nodes
    """Sorted within each node; no node is its own successor."""

    @property
    def node_count(self) -> int:
        """Functions and data objects together."""
        return len(self.functions) + len(self.data)

    def nodes_at(self, addresses: Int64s) -> Int64s:
        """The node that holds each address, PLT entries resolved; -1 for another library or no node."""
        return _nodes_at(addresses, self.functions, self.data, self.plt)

    def reachable(self, roots: Int64s, first_edge: Int64s | None = None, targets: Nodes | None = None) -> Flags:
        """Every node that can be reached from `roots`, as one flag per node; over other edges if given."""
        first_edge = self.first_edge if first_edge is None else first_edge
        return reachable(roots, first_edge, self.targets if targets is None else targets)


def build_code_graph(elf: ElfFile, progress: Progress = SILENT) -> CodeGraph:
    """Decode a library and join everything that refers to something.

    Raises UnsupportedLibrary when the library cannot be analysed soundly.
    """
    build_id = require_supported(elf)
    functions, plt, links = read_functions(elf), read_plt(elf), read_links(elf)
    references = read_references(elf, functions, progress)
    _require_known_entries(elf, plt, references)
    with progress.stage("joining references") as advance:
        data = read_data(elf, references, links)
        sources, targets = _edges(functions, data, plt, links, references)
        sources, targets = _with_orphan_cold_parts(elf, functions, sources, targets)
        first_edge, successors = compress(sources, targets, len(functions) + len(data))
        advance(1)
    return CodeGraph(build_id, functions, data, plt, links, references, first_edge, successors)


def require_supported(elf: ElfFile) -> str:
    """The build id of a library that can be analysed; raises UnsupportedLibrary for others. Cheap, so that it can be
    asked of a library whose graph is at hand: one that was stripped or cut has the build id of the whole."""
    require_processor(elf)
    require_symbols(elf)
    if elf.build_id is None:
        raise UnsupportedLibrary(
            "the library has no build id, so an analysis of it could go stale unnoticed", where=elf.path
        )
    return elf.build_id


def _require_known_entries(elf: ElfFile, plt: Plt, references: References) -> None:
    lost = unknown_entries(elf, plt, references.branch_targets)
    if len(lost):
        raise UnsupportedLibrary(
            f"code calls address {lost[0]:#x} of the procedure linkage table, and no entry is known there",
            where=elf.path,
        )


def reachable(roots: Int64s, first_edge: Int64s, targets: Nodes) -> Flags:
    """Breadth-first search over compressed edges; one flag per node."""
    seen = np.zeros(len(first_edge) - 1, bool)
    frontier = distinct(roots)
    seen[frontier] = True
    while len(frontier):
        found = targets[successor_positions(frontier, first_edge)]
        frontier = distinct(found[~seen[found]])
        seen[frontier] = True
    return seen


def successor_positions(nodes: Int64s, first_edge: Int64s) -> Int64s:
    """Positions in `targets` of all edges that leave `nodes`, node by node."""
    counts = first_edge[nodes + 1] - first_edge[nodes]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    positions: Int64s = np.arange(total) + np.repeat(first_edge[nodes] - (ends - counts), counts)
    return positions


def compress(sources: Int64s, targets: Int64s, count: int) -> tuple[Int64s, Nodes]:
    """Edges by source, sorted, each once, without self edges: (first edge of each node, targets)."""
    keep = (sources >= 0) & (targets >= 0) & (sources != targets)
    key = distinct(sources[keep].astype(np.int64) * count + targets[keep])
    source, target = np.divmod(key, max(count, 1))
    first_edge = np.searchsorted(source, np.arange(count + 1)).astype(np.int64)
    return first_edge, target.astype(np.int32)


def _nodes_at(addresses: Int64s, functions: FunctionTable, data: DataTable, plt: Plt) -> Int64s:
    resolved = plt.resolve(addresses)
    function = functions.owner(resolved)
    datum = data.owner(resolved)
    return np.where(function >= 0, function, np.where(datum >= 0, datum + len(functions), -1))


def _edges(
    functions: FunctionTable, data: DataTable, plt: Plt, links: Links, references: References
) -> tuple[Int64s, Int64s]:
    def nodes(addresses: Int64s) -> Int64s:
        return _nodes_at(addresses, functions, data, plt)

    sources = [
        functions.owner(references.operand_sites),
        functions.owner(references.branch_sites),
        functions.owner(references.falls_through - 1),
        nodes(links.slots),
    ]
    targets = [
        nodes(references.operand_targets),
        nodes(references.branch_targets),
        functions.owner(references.falls_through),
        nodes(links.targets),
    ]
    return np.concatenate(sources), np.concatenate(targets)


def _with_orphan_cold_parts(
    elf: ElfFile, functions: FunctionTable, sources: Int64s, targets: Int64s
) -> tuple[Int64s, Int64s]:
    """GCC moves unlikely code into `name.cold`, reached by jumps. A part without any jump to it can still be entered
    through a jump table or as a landing pad, so it hangs on every function of that name."""
    names = elf.names_of(functions.names)
    reached = np.zeros(len(functions), bool)
    reached[targets[(targets >= 0) & (targets < len(functions)) & (sources != targets)]] = True
    orphans: dict[bytes, list[int]] = {}
    for index in np.flatnonzero(~reached).tolist():
        if b".cold" in names[index]:
            orphans.setdefault(names[index].partition(b".cold")[0], []).append(index)
    if not orphans:
        return sources, targets
    extra = [(index, part) for index, name in _all_names(elf, functions) for part in orphans.get(name, ())]
    pairs = np.array(extra, np.int64).reshape(-1, 2)
    return np.concatenate([sources, pairs[:, 0]]), np.concatenate([targets, pairs[:, 1]])


def _all_names(elf: ElfFile, functions: FunctionTable) -> Iterator[tuple[int, bytes]]:
    """(function, name) for every symbol at a function's start: the part may be named after any of its aliases."""
    symbols = elf.symbols[np.isin(elf.symbols["value"], functions.starts.astype(np.uint64))]
    index = functions.owner(symbols["value"].astype(np.int64))
    yield from zip(index.tolist(), elf.names_of(symbols["name"].astype(np.int64)), strict=True)
