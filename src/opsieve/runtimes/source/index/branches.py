"""The `#if`s around a place: which are known to let it through, and where their first branches began."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from opsieve.runtimes.source.index.conditions import Conditions
from opsieve.runtimes.source.index.text import Event

OPENING = frozenset({"if", "ifdef", "ifndef"})
FURTHER = frozenset({"else", "elif"})

_BRACE = re.compile(r"[{}]")
_MAX_NESTING = 200

State = TypeVar("State")


@dataclass(slots=True)
class _Branch(Generic[State]):
    state: State
    holds: bool | None
    earlier: bool | None
    """Whether this or an earlier branch of the same `#if` is compiled."""


class Branches(Generic[State]):
    """Follows the conditional directives of a file; each branch of an `#if` begins in the same state."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._open: list[_Branch[State]] = []

    def follow(self, event: Event, state: State) -> State:
        """The state behind a directive that stands in `state`."""
        if event.kind in OPENING and len(self._open) < _MAX_NESTING:
            holds = self._conditions.holds(event.kind, event.text)
            self._open.append(_Branch(state, holds, holds))
        elif event.kind == "endif" and self._open:
            self._open.pop()
        elif event.kind in FURTHER and self._open:
            self._next(self._open[-1], event)
            return self._open[-1].state
        return state

    def _next(self, branch: _Branch[State], event: Event) -> None:
        holds = True if event.kind == "else" else self._conditions.holds("if", event.text)
        if branch.earlier is True or holds is False:
            branch.holds = False
        else:
            branch.holds = None if branch.earlier is None else holds
        if branch.earlier is False or holds is True:
            branch.earlier = holds

    @property
    def certainty(self) -> int:
        """2: this place is compiled, 1: nobody knows, 0: an `#if` leaves it out."""
        holds = [branch.holds for branch in self._open]
        return 0 if False in holds else 1 if None in holds else 2


def end_in_branches(code: str, position: int, events: Sequence[Event]) -> int:
    """The end of a body that holds `#else`: both branches may open the same brace, so each begins at the same depth.

    A body that opened before its `#else` ends there: the other branch has a head of its own.
    """
    depth, before = 1, list[int]()
    for event in (*events, Event(len(code), "", "")):
        for match in _BRACE.finditer(code, position, event.at):
            depth += 1 if match.group() == "{" else -1
            if depth == 0:
                return match.end()
        position = event.at
        if event.kind in OPENING:
            before.append(depth)
        elif event.kind in FURTHER:
            if not before:
                return position
            depth = before[-1]
        elif event.kind == "endif" and before:
            before.pop()
    return len(code)
