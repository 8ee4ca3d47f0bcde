"""Unpacking such a file, which may be hostile, into the user's cache: whole and checked, or not at all."""

from __future__ import annotations

import hashlib
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import zstandard
from filelock import FileLock

from opsieve.errors import InvalidFile, OpsieveError
from opsieve.graph.cache import cache_folder
from opsieve.progress import SILENT, Advance, Progress
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.objects.errors import store_errors
from opsieve.runtimes.source.packing.manifest import (
    GENERATED,
    MANIFEST,
    MAX_MANIFEST,
    PREPARED,
    ROOTS,
    TREE,
    WINDOW_LOG,
    WORKSPACE,
    Manifest,
    compiler_facts,
    read_manifest,
)
from opsieve.runtimes.source.prepared import make_current_for, read_prepared
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.workspace import workspace_folders

_CHUNK = 1 << 20
_HEADER_BYTES = 1 << 16
"""Of a tar header with its extensions and padding; the reader's own buffering included."""


@dataclass(frozen=True)
class Unpacked:
    """Where it is now."""

    tree: SourceTree
    """The source tree to build from: it has all that builds read."""

    manifest: Manifest
    already: bool
    """Whether everything was there before."""


def unpack_runtime(archive: Path, compiler: Compiler, progress: Progress = SILENT) -> Unpacked:
    """Put a packed archive into the cache, where builds with its options find it.

    Several calls at once, and calls again, do no harm. Raises InvalidFile for an archive that is broken, damaged, of
    another format, made with another compiler or by another version of opsieve; StoreFull, UnusableStore.
    """
    root = cache_folder()
    with store_errors(root), _opened(archive) as (tar, meter):
        manifest = _manifest(tar, meter, archive)
        _require_compiler(manifest, compiler, archive)
        there = _installed(manifest, root)
        if there is not None:
            return Unpacked(there, manifest, already=True)
        (root / "source-builds").mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".unpack-", dir=root / "source-builds") as name:
            total = sum(member.size for member in manifest.members.values())
            with progress.stage(f"unpacking {archive.name}", total) as advance:
                _extract(tar, meter, manifest, Path(name), archive, advance)
            return Unpacked(_install(Path(name), manifest, compiler, root, archive), manifest, already=False)


class _Meter:
    """A stream that gives no more than what was granted: headers of a tar archive can ask for any amount."""

    def __init__(self, stream: IO[bytes], where: Path) -> None:
        self._stream, self._where = stream, where
        self._left = 0

    def grant(self, size: int) -> None:
        """Allow this many bytes, a header and what the reader buffers."""
        self._left = size + _HEADER_BYTES

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes."""
        content = self._stream.read(size if 0 <= size <= _CHUNK else _CHUNK)
        self._left -= len(content)
        if self._left < 0:
            raise InvalidFile("the archive has a header that is too large", where=self._where)
        return content


@contextmanager
def _opened(archive: Path) -> Iterator[tuple[tarfile.TarFile, _Meter]]:
    try:
        with (
            _readable(archive) as file,
            zstandard.ZstdDecompressor(max_window_size=1 << WINDOW_LOG).stream_reader(file) as stream,
        ):
            meter = _Meter(stream, archive)
            meter.grant(0)
            with tarfile.open(fileobj=meter, mode="r|") as tar:  # type: ignore[call-overload]
                yield tar, meter
    except (tarfile.TarError, zstandard.ZstdError, EOFError, ValueError) as error:
        raise InvalidFile(
            f"the archive is broken: {error}", where=archive, expected="what opsieve runtime pack writes"
        ) from error


def _readable(archive: Path) -> IO[bytes]:
    try:
        return archive.open("rb")
    except OSError as error:
        raise InvalidFile(f"cannot read the archive: {error.strerror}", where=archive) from error


def _manifest(tar: tarfile.TarFile, meter: _Meter, archive: Path) -> Manifest:
    first = tar.next()
    if first is None or first.name != MANIFEST or not first.isreg() or first.size > MAX_MANIFEST:
        raise InvalidFile("this is no packed runtime", where=archive, expected="what opsieve runtime pack writes")
    meter.grant(first.size)
    content = tar.extractfile(first)
    return read_manifest(content.read() if content else b"", archive)


def _require_compiler(manifest: Manifest, compiler: Compiler, archive: Path) -> None:
    if manifest.compiler.identity != compiler.identity:
        here = compiler_facts(compiler).description
        raise InvalidFile(
            f"the archive was made with another compiler: {manifest.compiler.description}",
            where=archive,
            expected=f"the one that is here: {here}",
            remedy="name that compiler with --compiler, or compile here: opsieve build --runtime source --prepare",
        )


def _extract(
    tar: tarfile.TarFile, meter: _Meter, manifest: Manifest, folder: Path, archive: Path, advance: Advance
) -> None:
    missing = dict(manifest.members)
    for root in ROOTS:
        (folder / root).mkdir()
    while True:
        meter.grant(0)
        member = tar.next()
        if member is None:
            break
        wanted = missing.pop(member.name, None)
        if wanted is None or not member.isreg() or member.size != wanted.size:
            raise InvalidFile(f"the archive's member {member.name[:80]!r} is not as listed", where=archive)
        meter.grant(member.size)
        if _written(tar, member, folder / member.name, advance) != wanted.sha256:
            raise InvalidFile(f"the archive is damaged: {member.name}", where=archive, remedy="get it again")
    if missing:
        raise InvalidFile(f"the archive ends before {min(missing)[:80]!r}", where=archive, remedy="get it again")


def _written(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, advance: Advance) -> str:
    digest = hashlib.sha256()
    source = tar.extractfile(member)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            while source is not None and (chunk := source.read(_CHUNK)):
                digest.update(chunk)
                file.write(chunk)
                advance(len(chunk))
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise InvalidFile(f"the archive has a file and a folder {member.name[:80]!r}", where=target) from error
    return digest.hexdigest()


def _install(folder: Path, manifest: Manifest, compiler: Compiler, root: Path, archive: Path) -> SourceTree:
    """Move what was unpacked to its places. What is there already is the same and stays."""
    read_prepared(folder / PREPARED)
    tree = SourceTree.open(folder / TREE)
    generated, workspace = workspace_folders(tree, manifest.options, compiler)
    if tree.fingerprint() != manifest.fingerprint or (generated.name, workspace.name) != (
        manifest.generated,
        manifest.workspace,
    ):
        raise InvalidFile(
            f"the archive was made by another version of opsieve: {manifest.made_by}",
            where=archive,
            remedy="pack it again with the version that is to use it",
        )
    place = _tree_folder(manifest, root)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if _tree(place, manifest) is None:
            shutil.rmtree(place, ignore_errors=True)
            (folder / TREE).replace(place)
    _move(folder / GENERATED, generated)
    _move(folder / WORKSPACE, workspace)
    with FileLock(workspace / "prepared.lock"):
        target = workspace / manifest.prepared
        if not _is_prepared(target):
            shutil.rmtree(target, ignore_errors=True)
            (folder / PREPARED).replace(target)
        make_current_for(workspace, manifest.options, manifest.prepared)
    return SourceTree.open(place)


def _move(source: Path, target: Path) -> None:
    with FileLock(f"{target}.lock"):
        if not target.is_dir():
            source.replace(target)


def _installed(manifest: Manifest, root: Path) -> SourceTree | None:
    """The tree, if everything is in its place."""
    builds = root / "source-builds"
    workspace = builds / manifest.workspace
    if not (builds / manifest.generated).is_dir() or not _is_prepared(workspace / manifest.prepared):
        return None
    tree = _tree(_tree_folder(manifest, root), manifest)
    if tree is not None:
        make_current_for(workspace, manifest.options, manifest.prepared)
    return tree


def _tree(folder: Path, manifest: Manifest) -> SourceTree | None:
    """The tree in a folder if it is the one that was packed."""
    try:
        tree = SourceTree.open(folder)
        return tree if tree.fingerprint() == manifest.fingerprint else None
    except OpsieveError:
        return None


def _is_prepared(folder: Path) -> bool:
    try:
        read_prepared(folder)
    except InvalidFile:
        return False
    return True


def _tree_folder(manifest: Manifest, root: Path) -> Path:
    return root / "source-trees" / hashlib.sha256(manifest.fingerprint.encode()).hexdigest()[:20]
