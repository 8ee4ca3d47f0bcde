"""What can stop compiling as a whole, as opposed to one source file that is wrong."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opsieve.errors import OpsieveError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class StoreFull(OpsieveError):
    """The disk of the object store has no room left."""


class UnusableStore(OpsieveError):
    """The folder of the object store cannot be read or written."""


class CompilerStopped(OpsieveError):
    """The compiler was killed or ran out of memory: no fault of the source."""


class CompileFailed(OpsieveError):
    """Source files that the compiler does not accept."""


class UnusableFlag(OpsieveError):
    """A compiler flag that would write elsewhere than into the store, or that has its own place in a job."""


def store_full(root: Path) -> StoreFull:
    """The error for a disk without room."""
    return StoreFull(
        "no space left for compiled objects",
        where=root,
        remedy="make room and call again: what is compiled is kept; or set OPSIEVE_CACHE to a folder on another disk",
    )


@contextmanager
def store_errors(root: Path) -> Iterator[None]:
    """Turn what the operating system says about the store's folder into the errors above."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise store_full(root) from error
        if error.errno in _FORBIDDEN:
            raise UnusableStore(
                f"cannot use the store of compiled objects: {error.strerror}",
                where=error.filename or root,
                remedy="set OPSIEVE_CACHE to a folder that can be written",
            ) from error
        raise
