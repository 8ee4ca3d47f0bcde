"""Graphs that were built before, kept in the user's cache folder by the build id of their library."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path

from opsieve.code.elf import ElfFile
from opsieve.code.graph import require_supported
from opsieve.errors import InvalidFile
from opsieve.graph.op_graph import OpGraph, build_op_graph
from opsieve.graph.store import load_graph, save_graph
from opsieve.progress import SILENT, Progress

FORMAT = 8
"""To be raised whenever the analysis or the format of the saved graph changes: older entries are then not read."""

KEPT_ENTRIES = 4
"""Graphs kept in the cache, about 80 MB each; the least recently used ones go first."""

_UNFINISHED = "."
_ABANDONED_AFTER = 24 * 3600
"""Seconds after which an entry that nobody finished was left by a process that was killed."""


def cache_folder() -> Path:
    """`OPSIEVE_CACHE` if set, else the user's cache folder."""
    chosen = os.environ.get("OPSIEVE_CACHE")
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("opsieve")


def cached_op_graph(library: Path, progress: Progress = SILENT, *, rebuild: bool = False) -> OpGraph:
    """The operator graph of a library, from the cache if it is there, else built and put there.

    Safe with several processes at once: one builds, the others wait and read what it wrote.
    """
    from filelock import FileLock

    elf = ElfFile(library)
    build_id = require_supported(elf)
    folder = _writable(cache_folder() / "graphs")
    entry = folder / f"{build_id}-{FORMAT}"
    found = None if rebuild else _read(entry)
    if found is not None:
        return found
    with FileLock(folder / f"{entry.name}.lock"):
        found = None if rebuild else _read(entry)
        if found is None:
            found = build_op_graph(elf, progress)
            _write(found, entry)
            _forget_old(folder)
    return found


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidFile(
            f"cannot use the cache folder: {error.strerror}",
            where=folder,
            remedy="set OPSIEVE_CACHE to a folder that can be written",
        ) from error
    return folder


def _read(entry: Path) -> OpGraph | None:
    """The saved graph; None if there is none or it is damaged (it is then built again)."""
    try:
        graph = load_graph(entry)
        os.utime(entry)
    except (OSError, ValueError):
        return None
    return graph


def _write(graph: OpGraph, entry: Path) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=f"{_UNFINISHED}{entry.name}.", dir=entry.parent))
    try:
        save_graph(graph, temporary)
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink(missing_ok=True)
        temporary.rename(entry)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _forget_old(folder: Path) -> None:
    """Keep the entries used last. Another process may do the same, so that files vanish meanwhile.

    Locks are left: to remove one that another process waits for would give the same lock to two.
    """
    used = {path: _last_use(path) for path in folder.iterdir() if path.is_dir()}
    entries = sorted((path for path in used if not path.name.startswith(_UNFINISHED)), key=lambda path: -used[path])
    abandoned = (p for p in used if p.name.startswith(_UNFINISHED) and time.time() - used[p] > _ABANDONED_AFTER)
    for old in (*entries[KEPT_ENTRIES:], *abandoned):
        shutil.rmtree(old, ignore_errors=True)


def _last_use(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0
