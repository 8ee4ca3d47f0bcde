"""The linker's mark phase: what is live, from which roots, and over which shortest way.

As lld does it (lld/ELF/MarkLive.cpp) and GNU ld (bfd/elflink.c, bfd_elf_gc_sections): both start from the entry point,
the symbols asked for with -u, those that shared libraries may look up, and what the loader runs or reads by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order

from opsieve.code.elf import Int64s
from opsieve.runtimes.source.link.account.object_file import SHT_NOTE, Bools
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph

_INIT_ARRAY, _FINI_ARRAY, _PREINIT_ARRAY = 14, 15, 16
_SHF_GROUP, _SHF_GNU_RETAIN = 0x200, 0x200000
_RESERVED = rb"\.(?:init|fini|jcr|(?:init_array|ctors|dtors)[^\0]*)"
_IGNORED_NOTES = rb"\.note\.(?:GNU-stack|gnu\.property)"


@dataclass(frozen=True)
class Live:
    """The live sections of a program, in the order in which they are reached: those nearest to a root first."""

    order: Int64s
    parents: Int64s
    """Of each section of the program, the one that first reached it; the number of all sections for a root, -1 if it
    is not live."""

    roots: Int64s
    """The sections that nothing needs to refer to."""

    unwinding_only: Bools
    """Of each section of the program: whether nothing but the unwinding tables of dead functions refers to it."""


def mark(graph: ProgramGraph, roots: Iterable[bytes], *, frames_are_roots: bool) -> Live:
    """What stays when `roots` do: names of symbols.

    `frames_are_roots` is lld's way with unwinding tables: what they refer to and is in no group stays, whether or not
    the function stays. GNU ld follows them from live functions only.
    """
    named = [graph.definitions[name] for name in dict.fromkeys(roots) if name in graph.definitions]
    first = list(dict.fromkeys((*named, *_reserved(graph), *graph.common_roots.tolist())))
    rest = graph.frame_roots.tolist() if frames_are_roots else []
    order, parents = _reach(graph, first)
    reached = order
    if rest:
        first += [number for number in rest if parents[number] == -1]
        order, parents = _reach(graph, first)
    unwinding_only = np.zeros(int(graph.first[-1]), bool)
    unwinding_only[order] = True
    unwinding_only[reached] = False
    return Live(order, parents, np.array(first, np.int64), unwinding_only)


def _reach(graph: ProgramGraph, roots: list[int]) -> tuple[Int64s, Int64s]:
    """A search from all roots at once: from a node in front of them."""
    count = int(graph.first[-1])
    sources = np.concatenate([graph.sources, np.full(len(roots), count)])
    targets = np.concatenate([graph.targets, np.array(roots, np.int64)])
    matrix = csr_matrix((np.ones(len(sources)), (sources, targets)), (count + 1, count + 1))
    order, parents = breadth_first_order(matrix, count)
    parents[parents < 0] = -1
    return order[1:].astype(np.int64), parents[:count].astype(np.int64)


def _reserved(graph: ProgramGraph) -> list[int]:
    """What the loader uses without being told: constructors, destructors, notes; and what asks to be retained."""
    kinds, flags = graph.column("type"), graph.column("flags")
    note = (kinds == SHT_NOTE) & ((flags & _SHF_GROUP) == 0)
    certain = np.isin(kinds, (_INIT_ARRAY, _FINI_ARRAY, _PREINIT_ARRAY)) | ((flags & _SHF_GNU_RETAIN) > 0)
    found = set(np.flatnonzero(graph.used & certain).tolist())
    for part, base in zip(graph.objects, graph.first.tolist(), strict=False):
        own = slice(base, base + len(part))
        chosen = {*part.named(_RESERVED).tolist(), *np.flatnonzero(note[own]).tolist()}
        chosen -= set(part.named(_IGNORED_NOTES).tolist())
        found.update(base + number for number in chosen if graph.used[base + number])
    return sorted(found)
