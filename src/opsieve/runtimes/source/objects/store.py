"""The folder of kept objects: shared by all builds of a user, bounded, and safe with several runs at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from filelock import BaseFileLock, FileLock, Timeout

from opsieve.graph.cache import cache_folder
from opsieve.runtimes.source.objects.costs import Costs
from opsieve.runtimes.source.objects.errors import store_errors
from opsieve.runtimes.source.objects.files import KnownFile
from opsieve.runtimes.source.objects.known_files import read_known_files, write_known_files

DEFAULT_LIMIT = 4 << 30
"""Bytes of objects and manifests kept when a run ends."""


class ObjectStore:
    """Objects below `root`, at most `limit` bytes of them between runs.

    Every run holds a shared lock on the store from its first use until `close`; objects are removed only by who gets
    that lock alone. So the paths a run was given stay valid until it closes the store or ends, in whatever way it ends.
    """

    def __init__(self, root: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit
        self._lock: int | None = None
        self._used: set[str] = set()
        self._costs: Costs | None = None
        self.known_files: dict[str, KnownFile] = {}

    @classmethod
    def of_user(cls, limit: int = DEFAULT_LIMIT) -> ObjectStore:
        """The store in the user's cache folder (`OPSIEVE_CACHE`)."""
        return cls(cache_folder() / "objects", limit)

    def __enter__(self) -> ObjectStore:
        self.hold()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def hold(self) -> None:
        """Take part in the store until `close`. Raises UnusableStore or StoreFull."""
        if self._lock is not None:
            return
        with store_errors(self.root):
            self.root.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.root / "in-use", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            fcntl.flock(self._lock, fcntl.LOCK_SH)
            # Only under the lock: until then another run may be removing them.
            for folder in ("objects", "manifests", "locks", "work"):
                (self.root / folder).mkdir(exist_ok=True)
            self._costs = Costs(self.root / "costs.jsonl")
            self.known_files = read_known_files(self.root)

    def close(self) -> None:
        """Let go of the store. The last one to do so removes what is over the limit, the least recently used first."""
        if self._lock is None:
            return
        try:
            # Never wait: another run is using the store, and will tidy up when it ends.
            with contextlib.suppress(OSError):
                write_known_files(self.root, self.known_files)
            with contextlib.suppress(OSError):
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._tidy()
        finally:
            os.close(self._lock)
            self._lock = None
            self._used.clear()

    @property
    def costs(self) -> Costs:
        """What compiling cost in earlier runs."""
        self.hold()
        if self._costs is None:
            raise RuntimeError("the store is not held")
        return self._costs

    def object_path(self, key: str) -> Path:
        """Where the object of a key is, or would be."""
        return self.root / "objects" / key[:2] / f"{key}.o"

    def manifest_path(self, key: str) -> Path:
        """Where the manifest of a job's key is, or would be."""
        return self.root / "manifests" / key[:2] / key

    def use(self, path: Path, size: int | None = None) -> bool:
        """Mark a file as used now. False if it is not there, or is not of the given size in bytes."""
        try:
            if size is not None and path.stat().st_size != size:
                return False
            os.utime(path)
        except OSError:
            return False
        self._used.add(str(path))
        return True

    def keep(self, made: Path, key: str) -> Path:
        """Move a finished object to its place. Two processes may do so with the same one."""
        path = self.object_path(key)
        path.parent.mkdir(exist_ok=True)
        made.replace(path)
        self._used.add(str(path))
        return path

    @contextmanager
    def work_folder(self) -> Iterator[Path]:
        """A folder on the same disk for unfinished things; removed afterwards, by a later run if this one is killed."""
        self.hold()
        folder = Path(tempfile.mkdtemp(dir=self.root / "work"))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def try_lock(self, key: str) -> BaseFileLock | None:
        """The right to compile the job of this key; None while another process has it."""
        lock = FileLock(self.root / "locks" / key)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return lock

    def _tidy(self) -> None:
        """For who has the store alone: nobody works in `work`, nobody waits for a lock."""
        for folder in ("work", "locks"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        if self._costs is not None:
            self._costs.compact()
        self._prune()

    def _prune(self) -> None:
        kept = [(path, path.stat()) for path in self.root.glob("*/*/*") if path.is_file()]
        size = sum(status.st_size for _, status in kept)
        for path, status in sorted(kept, key=lambda item: item[1].st_mtime_ns):
            if size <= self.limit:
                break
            if str(path) not in self._used:
                path.unlink(missing_ok=True)
                size -= status.st_size
