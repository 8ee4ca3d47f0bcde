"""What removed functions say when they are called: which operator is not there, and how to add it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import ElfFile, Int64s
from opsieve.code.graph import successor_positions
from opsieve.graph.scopes import BACKENDS, Scope
from opsieve.graph.symbols import CATCH_ALL
from opsieve.runtimes.wheel.keep import KeptFunctions
from opsieve.runtimes.wheel.library.guard.table import RemovedFunctions
from opsieve.runtimes.wheel.library.redirect import Redirects
from opsieve.runtimes.wheel.library.stubs import PrunedError

ADVICE = "build again with opsieve and --consumer naming the program or library that calls it"
_SCOPE_OF_KEY = {key: scope for scope, keys in BACKENDS.items() for key in keys}


@dataclass(frozen=True, slots=True, order=True)
class PrunedKernel:
    """A removed kernel: of an operator that is not selected, or for a key outside the scopes."""

    operator: str
    key: str
    """The dispatch key; empty when the operator itself is not selected."""

    @property
    def option(self) -> str:
        """The option of `opsieve build` that brings it back."""
        return f"--scope {_SCOPE_OF_KEY.get(self.key, Scope.ALL)}" if self.key else f"--op {self.operator}"

    def error(self) -> PrunedError:
        """The error that a call raises."""
        what = f"the {self.key} kernel of {self.operator}" if self.key else self.operator
        return PrunedError(
            self.operator,
            f"{what} is not in this opsieve build of PyTorch, which holds only what its models need. "
            f"To add it, build again with {self.option}",
        )


def removed_functions(elf: ElfFile, kept: KeptFunctions) -> tuple[tuple[PrunedError, ...], Redirects, RemovedFunctions]:
    """The errors, which function raises which of them, and the names of all removed functions for the guard."""
    pruned = dict(_pruned_kernels(kept))
    kinds = sorted(set(pruned.values()))
    number = {kind: index for index, kind in enumerate(kinds)}
    functions = kept.graph.code.functions
    raising = np.array(sorted(pruned), np.int64)
    redirects = Redirects(
        functions.starts[raising],
        functions.ends[raising],
        np.array([number[pruned[function]] for function in raising.tolist()], np.int64),
    )
    return tuple(kind.error() for kind in kinds), redirects, _for_guard(elf, kept, pruned)


def _pruned_kernels(kept: KeptFunctions) -> Iterator[tuple[int, PrunedKernel]]:
    """(function, what a call of it asks for) for every cut function that belongs to an operator."""
    graph, cut = kept.graph, set(kept.cut.tolist())
    for registration in graph.all_registrations:
        selected = registration.operator in kept.operators
        key = registration.key if selected and registration.key != CATCH_ALL else ""
        for function in cut.intersection(registration.kernels):
            yield function, PrunedKernel(registration.operator, key)
    by_macro = {operator.partition(".")[0].replace("::", "_"): operator for operator in graph.operators}
    for function in cut.intersection(graph.landmarks.static_runtime):
        macro = graph.landmarks.static_runtime[function]
        operator = by_macro.get(macro, macro.replace("_", "::", 1))
        yield function, PrunedKernel(operator.partition(".")[0], "")
    for function in cut.intersection(graph.invocations.entries):
        yield function, PrunedKernel(graph.invocations.entries[function], "")


def _for_guard(elf: ElfFile, kept: KeptFunctions, pruned: dict[int, PrunedKernel]) -> RemovedFunctions:
    functions = kept.graph.code.functions
    removed = np.flatnonzero(~kept.kept)
    operator_names = tuple(sorted({kind.operator for kind in pruned.values()}))
    number = {name: index for index, name in enumerate(operator_names)}
    seeds = {function: number[kind.operator] for function, kind in pruned.items()}
    return RemovedFunctions(
        starts=functions.starts[removed],
        ends=functions.ends[removed],
        names=elf.names_of(functions.names[removed]),
        operators=_nearest_operator(kept, seeds)[removed],
        operator_names=operator_names,
        advice=ADVICE,
    )


def _nearest_operator(kept: KeptFunctions, seeds: dict[int, int]) -> Int64s:
    """For each node the seed's number from which it is reached first, going only through what was removed; else -1."""
    code = kept.graph.code
    label = np.full(code.node_count, -1, np.int64)
    closed = np.zeros(code.node_count, bool)
    closed[: len(kept.kept)] = kept.kept
    frontier = np.array(sorted(seeds), np.int64)
    label[frontier] = [seeds[function] for function in frontier.tolist()]
    while len(frontier):
        positions = successor_positions(frontier, code.first_edge)
        origin = np.repeat(frontier, code.first_edge[frontier + 1] - code.first_edge[frontier])
        found = code.targets[positions]
        new = (label[found] < 0) & ~closed[found]
        # Of several origins the last one written wins; any of them is a right answer.
        label[found[new]] = label[origin[new]]
        frontier = np.unique(found[new]).astype(np.int64)
    return label
