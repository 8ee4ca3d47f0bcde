"""A quick look at whether the headers outside a source tree are still those that objects were compiled with.

The tree itself is known by the contents of its files. The compiler's, the system's and third parties' headers are
thousands of files that hardly ever change, so their times and sizes have to do. What is new in an include folder could
hide one of them: so the folder's own time counts as well. Whatever differs costs a thorough look, not a wrong object.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import msgspec

_ABSENT = (0, 0)
_SEARCHED = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CXXFLAGS", "CFLAGS", "CPPFLAGS")
"""Variables that change what a compiler finds, or that users believe do."""


class Stamps(msgspec.Struct, frozen=True):
    """Path -> time of the last change in nanoseconds, and size in bytes; zeros for what is not there."""

    seen: dict[str, tuple[int, int]]
    environment: dict[str, str]

    @classmethod
    def of(cls, paths: Iterable[str]) -> Stamps:
        """The stamps of files and folders as they are now."""
        return cls({path: _stamp(path) for path in sorted(set(paths))}, _environment())

    def hold(self) -> bool:
        """Whether nothing has changed since."""
        return self.environment == _environment() and all(_stamp(path) == seen for path, seen in self.seen.items())


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116 - called for thousands of files
    except OSError:
        return _ABSENT
    return status.st_mtime_ns, status.st_size


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _SEARCHED if name in os.environ}
