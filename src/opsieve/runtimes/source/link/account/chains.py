"""Shortest chains of needs, from what was asked for to an operator."""

from __future__ import annotations

from opsieve.operators import OperatorName
from opsieve.runtimes.source.link.account.values import LinkAccount, Need


def chains_to(account: LinkAccount, target: OperatorName) -> dict[OperatorName | None, tuple[Need, ...]]:
    """Root -> the needs of a shortest way from it to `target`, the shortest first.

    Roots are the operators that were asked for, and None for the runtime itself. The chain of `target` itself, if
    it was asked for, is empty. Raises UnknownOperator if it is not in the program.
    """
    following: dict[OperatorName | None, Need | None] = {account.operator(target).name: None}
    needed_by = account.needed_by()
    frontier = [target]
    while frontier:
        reached = []
        for operator in frontier:
            for need in needed_by.get(operator, ()):
                if need.source not in following:
                    following[need.source] = need
                    if need.source is not None:
                        reached.append(need.source)
        frontier = sorted(reached)
    roots = [root for root in following if root is None or account.operator(root).asked]
    chains = {root: _walk(following, root) for root in roots}
    return dict(sorted(chains.items(), key=lambda item: (len(item[1]), str(item[0] or ""))))


def _walk(following: dict[OperatorName | None, Need | None], root: OperatorName | None) -> tuple[Need, ...]:
    steps, at = [], following[root]
    while at is not None:
        steps.append(at)
        at = following[at.target]
    return tuple(steps)
