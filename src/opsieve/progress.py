"""How long work tells that it goes on, without the library printing anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the amount of work done since the last call, in the unit of the stage's total."""


class Progress(Protocol):
    """Receives the stages of one piece of work; the command line draws them as bars."""

    def stage(self, title: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Open a stage; `total` is the amount of work in any unit, None when nobody knows."""
        ...


class SilentProgress:
    """The default: nothing is shown."""

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Advance]:
        """Accept every advance and show nothing."""
        yield lambda amount: None


SILENT: Progress = SilentProgress()
