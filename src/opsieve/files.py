"""Writing results so that nothing is overwritten by accident and nothing half-made is left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from opsieve.errors import OutputExists


def refuse_existing(target: Path, force: bool) -> None:
    """Raise OutputExists if `target` is there and `force` is not given."""
    if not force and (target.exists() or target.is_symlink()):
        raise OutputExists("the output exists already", where=target, remedy="choose another name, or give --force")


@contextmanager
def replacing_file(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary name beside `target`; on success it becomes `target`, on any failure it is removed."""
    refuse_existing(target, force)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(target: Path, *, force: bool = False) -> Iterator[Path]:
    """Give a temporary folder beside `target`; on success it becomes `target`, on any failure it is removed."""
    refuse_existing(target, force)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        yield temporary
        temporary.chmod(0o777 & ~_umask())
        if force and target.exists():
            # rename() cannot replace a folder that is not empty: move the old one aside first.
            old = Path(tempfile.mkdtemp(prefix=f".{target.name}.old.", dir=target.parent))
            target.replace(old / target.name)
            temporary.replace(target)
            shutil.rmtree(old)
        else:
            temporary.replace(target)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
