"""Which nodes of a graph stand on every way from the root to a node, and what would go without them.

The iterative algorithm of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance Algorithm", 2001), behind a reduction
that takes most nodes away: a node with a single predecessor belongs to that predecessor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import Int64s


@dataclass(frozen=True)
class Dominators:
    """For some nodes of a graph, what hangs on them alone."""

    sums: dict[int, Int64s]
    """Of each node asked for: the sum of the weights of all nodes that only it leads to, itself among them."""

    above: dict[int, tuple[int, ...]]
    """Of each node asked for: the others asked for that stand on every way to it, the nearest first."""


def find_dominators(sources: Int64s, targets: Int64s, weights: Int64s, root: int, wanted: Iterable[int]) -> Dominators:
    """Dominators among `wanted`, for a graph all of whose nodes can be reached from `root`; `weights` has a row for
    each node."""
    asked = sorted(set(wanted))
    heads, sources, targets = _reduce(sources, targets, len(weights), root, asked)
    sums = np.zeros_like(weights)
    np.add.at(sums, heads, weights)
    order, immediate = _immediate(sources, targets, root)
    for node in reversed(order[1:]):
        sums[immediate[node]] += sums[node]
    asked_set = set(asked)
    above = {}
    for node in asked:
        found, at = [], node
        while at in immediate and at != root:
            at = immediate[at]
            if at in asked_set:
                found.append(at)
        above[node] = tuple(found)
    return Dominators({node: sums[node] for node in asked}, above)


def _reduce(sources: Int64s, targets: Int64s, count: int, root: int, kept: list[int]) -> tuple[Int64s, Int64s, Int64s]:
    """Each node's head, and the edges between heads. Neither the root nor what is to be kept has another head."""
    heads = np.arange(count)
    fixed = np.zeros(count, bool)
    fixed[[root, *kept]] = True
    while True:
        sources, targets = np.divmod(np.unique(heads[sources] * count + heads[targets]), count)
        inner = (sources == targets) | (targets == root)
        sources, targets = sources[~inner], targets[~inner]
        single = (np.bincount(targets, minlength=count) == 1) & ~fixed
        chosen = single[targets]
        if not chosen.any():
            return heads, sources, targets
        following = np.arange(count)
        following[targets[chosen]] = sources[chosen]
        while (following[following] != following).any():
            following = following[following]
        heads = following[heads]


def _immediate(sources: Int64s, targets: Int64s, root: int) -> tuple[list[int], dict[int, int]]:
    """The nodes in reverse postorder, and the immediate dominator of each."""
    following: dict[int, list[int]] = {}
    before: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        following.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)
    order = _reverse_postorder(following, root)
    place = {node: number for number, node in enumerate(order)}
    # By place in the order, so that "nearer to the root" is "smaller".
    coming = [[place[node] for node in before.get(target, ()) if node in place] for target in order]
    above = [-1] * len(order)
    above[0] = 0
    changed = True
    while changed:
        changed = False
        for number in range(1, len(order)):
            best = -1
            for other in coming[number]:
                if above[other] >= 0:
                    best = other if best < 0 else _meet(above, best, other)
            if above[number] != best:
                above[number], changed = best, True
    return order, {order[number]: order[above[number]] for number in range(1, len(order))}


def _meet(above: list[int], one: int, other: int) -> int:
    while one != other:
        while one > other:
            one = above[one]
        while other > one:
            other = above[other]
    return one


def _reverse_postorder(following: dict[int, list[int]], root: int) -> list[int]:
    seen, finished = {root}, []
    stack = [(root, iter(following.get(root, ())))]
    while stack:
        node, rest = stack[-1]
        for target in rest:
            if target not in seen:
                seen.add(target)
                stack.append((target, iter(following.get(target, ()))))
                break
        else:
            stack.pop()
            finished.append(node)
    return finished[::-1]
