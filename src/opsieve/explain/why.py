"""Why an operator is in a runtime, or why not, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opsieve.errors import InvalidFile
from opsieve.graph.dependencies import Dependencies, find_dependencies
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
from opsieve.runtimes.wheel.keep import KeptFunctions
from opsieve.select.selection import Reason, ReasonKind, Selection


@dataclass(frozen=True, slots=True)
class Chain:
    """One shortest way from something that asked for an operator to the operator in question."""

    asked_by: Reason
    operators: tuple[str, ...]
    """From the root to the operator in question; just that one if it is the root."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What leaving the operator out would save, or what adding it would cost."""

    operators: tuple[str, ...]
    """The operators that would go or come with it, sorted, itself among them."""

    code_bytes: int


@dataclass(frozen=True, slots=True)
class Why:
    """The answer for one operator."""

    operator: str
    present: bool
    chains: tuple[Chain, ...]
    """One for each root that needs it, shortest first."""

    any_operator: bool
    """Whether it is there because any operator may need it."""

    cost: Cost


def explain(
    graph: OpGraph,
    selection: Selection,
    operator: str,
    keep: Callable[[frozenset[str]], KeptFunctions],
) -> Why:
    """Answer for one operator of a selection. `keep` gives the functions that stay for a set of operators.

    Raises UnknownOperator for an operator that the runtime does not have, InvalidFile for a stale selection.
    """
    if selection.runtime.build_id != graph.build_id:
        raise InvalidFile(
            f"the selection was made for another library (build id {selection.runtime.build_id[:12]}, "
            f"now {graph.build_id[:12]})",
            remedy="build again with the PyTorch that is installed now",
        )
    graph.number(operator)
    dependencies = find_dependencies(graph, frozenset(Scope(name) for name in selection.scopes))
    roots = _roots(selection)
    if operator not in selection.names:
        added = dependencies.closure([*roots, operator])
        return Why(operator, False, (), False, _cost(keep, selection.names, added))
    chains = _chains(dependencies, roots, operator)
    rest = _closure_without(dependencies, roots, operator)
    return Why(operator, True, chains, operator in dependencies.always, _cost(keep, rest, selection.names))


def _roots(selection: Selection) -> dict[str, Reason]:
    """Each operator that something asked for, with the first reason; models come before everything else."""
    order = [ReasonKind.MODEL, ReasonKind.OPTION, ReasonKind.FRAMEWORK]
    roots = {}
    for selected in selection.operators:
        asked = [reason for reason in selected.reasons if reason.kind in order]
        if asked:
            roots[str(selected.name)] = min(asked, key=lambda reason: (order.index(reason.kind), reason))
    return roots


def _chains(dependencies: Dependencies, roots: dict[str, Reason], operator: str) -> tuple[Chain, ...]:
    following = _next_step(dependencies, operator)
    chains = []
    for root, reason in roots.items():
        if root in following:
            steps = [root]
            while steps[-1] != operator:
                steps.append(following[steps[-1]])
            chains.append(Chain(reason, tuple(steps)))
    asked = [ReasonKind.MODEL, ReasonKind.OPTION, ReasonKind.FRAMEWORK]
    return tuple(sorted(chains, key=lambda c: (asked.index(c.asked_by.kind), len(c.operators), c.operators)))


def _next_step(dependencies: Dependencies, operator: str) -> dict[str, str]:
    """For each operator that needs `operator`, the next one on a shortest way there: a search against the edges."""
    names, numbers = dependencies.graph.operators, dependencies.graph.number
    following = {operator: operator}
    frontier = [operator]
    while frontier:
        reached = []
        for target in frontier:
            for source in dependencies.needs[:, numbers(target)].nonzero()[0].tolist():
                if names[source] not in following:
                    following[names[source]] = target
                    reached.append(names[source])
        frontier = reached
    return following


def _closure_without(dependencies: Dependencies, roots: dict[str, Reason], operator: str) -> frozenset[str]:
    """What stays needed if nothing may use `operator` any more."""
    starts = (set(roots) | dependencies.always) - {operator}
    found = set(starts)
    frontier = list(starts)
    while frontier:
        new = dependencies.direct(frontier.pop()) - found - {operator}
        found |= new
        frontier.extend(new)
    return frozenset(found)


def _cost(keep: Callable[[frozenset[str]], KeptFunctions], less: frozenset[str], more: frozenset[str]) -> Cost:
    return Cost(tuple(sorted(more - less)), keep(more).code_size - keep(less).code_size)
