"""What is on the disk, asked once: contents of headers and listings of folders."""

from __future__ import annotations

import hashlib
import os
import time

import msgspec

from opsieve.runtimes.source.objects.includes import Includes, find_includes

DIGEST_BYTES = 16

_TOO_NEW_NS = 3 * 10**9
"""A file read so soon after a change is read again: another change could leave it the same times."""


class FileFacts(msgspec.Struct, frozen=True, array_like=True):
    """A file's content as far as it matters: its digest and what it includes."""

    digest: bytes
    includes: Includes


class KnownFile(msgspec.Struct, frozen=True, array_like=True):
    """Facts, and the times, size and inode that the file had when they were read."""

    signature: tuple[int, int, int, int, int]
    facts: FileFacts


def digest(*parts: bytes) -> bytes:
    """A hash of the parts; where one ends and the next begins counts."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        state.update(len(part).to_bytes(8, "little"))
        state.update(part)
    return state.digest()


class Files:
    """Files of one run. Contents are read again when the file's inode, size or times changed; listings are not.

    `newest` is the latest change, in nanoseconds, of any file that was read or found through this object: what is newer
    than the start of a compiler run may not be what the compiler saw. It counts changes by the inode's own time, which
    nobody can set, so that unpacked files of the future do no harm. Of files that were only found, those matter that
    may have appeared since `since_ns`: a new name in a folder changes the times of both. (A whole folder that is moved
    to a name while the compiler looks for it is not noticed.)
    """

    def __init__(self, known: dict[str, KnownFile], since_ns: int | None = None) -> None:
        self._known = known
        self._since_ns = since_ns
        self._changed: set[str] = set()
        self._listings: dict[str, frozenset[str]] = {}
        self._canonical: dict[str, str] = {}
        self.newest = 0

    def renewed(self, since_ns: int) -> Files:
        """The same contents, but every listing is read again, and what appeared since a time is noticed."""
        return Files(self._known, since_ns)

    def facts(self, path: str) -> FileFacts | None:
        """Digest and includes of a file; None if there is no such file or it cannot be read."""
        try:
            status = os.stat(path)  # noqa: PTH116 - called for every header of every run
        except OSError:
            return None
        self.newest = max(self.newest, status.st_ctime_ns)
        signature = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino, status.st_dev)
        known = self._known.get(path)
        if known is not None and known.signature == signature:
            return known.facts
        try:
            with open(path, "rb") as stream:  # noqa: PTH123
                content = stream.read()
        except OSError:
            return None
        facts = FileFacts(digest(content), find_includes(content))
        if status.st_ctime_ns < time.time_ns() - _TOO_NEW_NS:
            self._known[path] = KnownFile(signature, facts)
        return facts

    def exists(self, folder: str, name: str) -> bool:
        """Whether `name`, which may hold slashes, is a file below `folder`."""
        below, slash, last = name.rpartition("/")
        where = f"{folder}/{below}" if slash else folder
        listing = self._listings.get(where)
        if listing is None:
            listing = self._listings[where] = self._listed(where)
        found = last in listing
        if found and where in self._changed:
            self.newest = max(self.newest, _changed_ns(f"{where}/{last}"))
        return found

    def canonical(self, folder: str) -> str:
        """The folder's path without links and dots, and without a slash at its end."""
        known = self._canonical.get(folder)
        if known is None:
            known = self._canonical[folder] = os.path.realpath(folder or "/").rstrip("/")
        return known

    def _listed(self, folder: str) -> frozenset[str]:
        try:
            with os.scandir(folder) as entries:
                listed = frozenset(entry.name for entry in entries if _is_file(entry))
        except OSError:
            return frozenset()
        if self._since_ns is not None and _changed_ns(folder) >= self._since_ns:
            self._changed.add(folder)
        return listed


def _changed_ns(path: str) -> int:
    """When an inode changed last; what is gone again changed just now."""
    try:
        return os.stat(path).st_ctime_ns  # noqa: PTH116
    except OSError:
        return time.time_ns()


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:
        return False
