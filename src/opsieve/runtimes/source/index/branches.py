"""The `#if`s around a place: which are known to let it through, and where their first branches began."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from opsieve.runtimes.source.index.conditions import Conditions
from opsieve.runtimes.source.index.text import Event

OPENING = frozenset({"if", "ifdef", "ifndef"})
FURTHER = frozenset({"else", "elif"})
CONDITIONAL = OPENING | FURTHER | {"endif"}

_BRACE = re.compile(r"[{}]")
_MAX_NESTING = 200

State = TypeVar("State")


@dataclass(slots=True)
class _Branch(Generic[State]):
    state: State
    """At the `#if`."""

    holds: bool | None
    earlier: bool | None
    """Whether this or an earlier branch of the same `#if` is compiled."""

    kept: State
    """At the end of the last branch that may be compiled."""


class Branches(Generic[State]):
    """Follows the conditional directives of a file; each branch of an `#if` begins in the same state."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions
        self._open: list[_Branch[State]] = []

    def follow(self, event: Event, state: State) -> State:
        """The state behind a directive that stands in `state`."""
        if event.kind in OPENING and len(self._open) < _MAX_NESTING:
            holds = self._conditions.holds(event.kind, event.text)
            self._open.append(_Branch(state, holds, holds, state))
        elif event.kind == "endif" and self._open:
            return self._leave(self._open.pop(), state).kept
        elif event.kind in FURTHER and self._open:
            self._next(self._leave(self._open[-1], state), event)
            return self._open[-1].state
        return state

    def _leave(self, branch: _Branch[State], state: State) -> _Branch[State]:
        if branch.holds is not False:
            branch.kept = state
        return branch

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

    def body_end(self, code: str, position: int, events: Sequence[Event], index: int) -> int:
        """The end of a body that holds conditional directives: both branches may open, or close, the same brace.

        `position` is behind the body's `{`, `index` the first event there. A body that opened behind an
        `#if` ends at its `#else`: the other branch has a head of its own.
        """
        depth = 1
        inner: Branches[int] = Branches(self._conditions)
        following = (events[number] for number in range(index, len(events)))
        for event in chain(following, (Event(len(code), "", ""),)):
            for match in _BRACE.finditer(code, position, event.at) if inner.certainty else ():
                depth += 1 if match.group() == "{" else -1
                if depth == 0:
                    return match.end()
            position = event.at
            if event.kind in FURTHER and not inner._open:
                return position
            depth = inner.follow(event, depth)
        return len(code)
