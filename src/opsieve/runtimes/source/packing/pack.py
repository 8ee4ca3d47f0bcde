"""Packing a prepared archive into one file."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
import zstandard

from opsieve import __version__
from opsieve.files import refuse_existing, replacing_file
from opsieve.progress import SILENT, Advance, Progress
from opsieve.runtimes.source.flatbuffers import SCHEMA
from opsieve.runtimes.source.objects import Compiler, UnusableFlag
from opsieve.runtimes.source.packing.manifest import (
    FORMAT,
    GENERATED,
    LEVEL,
    MANIFEST,
    PREPARED,
    TREE,
    WINDOW_LOG,
    WORKSPACE,
    Manifest,
    Member,
    compiler_facts,
)
from opsieve.runtimes.source.prepared import OBJECTS, RECORD, REFERENCES, PreparedObjects, native_flags
from opsieve.runtimes.source.tree import ORIGIN_FILE, VERSION_FILE, SourceTree
from opsieve.runtimes.source.workspace import THIRD_PARTY, Workspace

_BESIDE = (VERSION_FILE, ORIGIN_FILE, "CMakeLists.txt", "LICENSE", "NOTICE", SCHEMA)
_HEADERS = ("torch/*.h", *(f"third_party/{folder}/**/*.{suffix}" for folder in THIRD_PARTY for suffix in ("h", "hpp")))
_Content = Path | bytes


@dataclass(frozen=True)
class Packed:
    """The file that was written; sizes in bytes."""

    path: Path
    size: int
    files: int
    unpacked: int


def pack(
    workspace: Workspace,
    prepared: PreparedObjects,
    compiler: Compiler,
    target: Path,
    *,
    force: bool = False,
    progress: Progress = SILENT,
) -> Packed:
    """Write objects, workspace, and the files of the tree that builds read. The same contents give the same bytes.

    Raises OutputExists unless `force` is given, UnusableFlag for objects that only this processor can run.
    """
    refuse_existing(target, force)
    native = native_flags(workspace.options)
    if native:
        raise UnusableFlag(
            f"objects made with {native[0]} serve no machine but this one",
            expected=f"a processor by its name, such as {native[0].partition('=')[0]}=x86-64-v3",
        )
    contents = dict(_contents(workspace, prepared))
    with progress.stage("reading what is packed", len(contents)) as advance:
        members = {name: _member(content, advance) for name, content in contents.items()}
    manifest = Manifest(
        format=FORMAT,
        made_by=__version__,
        pytorch=workspace.tree.version,
        fingerprint=workspace.tree.fingerprint(),
        compiler=compiler_facts(compiler),
        options=workspace.options,
        generated=workspace.generated.name,
        workspace=workspace.folder.name,
        prepared=prepared.folder.name,
        members=members,
    )
    total = sum(member.size for member in members.values())
    with progress.stage("packing", total) as advance, replacing_file(target, force=force) as temporary:
        _write(temporary, {MANIFEST: msgspec.json.encode(manifest), **contents}, advance)
    return Packed(target, target.stat().st_size, len(members), total)


def _contents(workspace: Workspace, prepared: PreparedObjects) -> Iterator[tuple[str, _Content]]:
    """The manifest's files in an order in which what is alike is near."""
    yield from ((f"{TREE}/{name}", workspace.tree.root / name) for name in _tree_files(workspace.tree))
    yield from _files(workspace.generated, GENERATED)
    for name, path in _files(workspace.folder, WORKSPACE):
        if not path.relative_to(workspace.folder).parts[0].startswith("prepared") and path.suffix != ".lock":
            yield name, path
    # Times of headers on this machine say nothing on another.
    yield f"{PREPARED}/{RECORD}", msgspec.json.encode(msgspec.structs.replace(prepared.record, stamps=None))
    yield from _files(prepared.folder / REFERENCES, f"{PREPARED}/{REFERENCES}")
    yield from ((f"{PREPARED}/{OBJECTS}/{name}.o", path) for name, path in sorted(prepared.objects.items()))


def _tree_files(tree: SourceTree) -> list[str]:
    """What a build reads, so that whoever unpacks it needs no other tree; and the licence."""
    headers = {path.relative_to(tree.root).as_posix() for pattern in _HEADERS for path in tree.root.glob(pattern)}
    return sorted(name for name in {*tree.read_by_builds(), *_BESIDE, *headers} if (tree.root / name).is_file())


def _files(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"{name}/{path.relative_to(folder).as_posix()}", path


def _member(content: _Content, advance: Advance) -> Member:
    advance(1)
    if isinstance(content, bytes):
        return Member(len(content), hashlib.sha256(content).hexdigest())
    with content.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
        return Member(stream.tell(), digest.hexdigest())


def _write(target: Path, contents: Mapping[str, _Content], advance: Advance) -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL, window_log=WINDOW_LOG, enable_ldm=True, threads=len(os.sched_getaffinity(0))
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    with (
        target.open("wb") as file,
        compressor.stream_writer(file, closefd=False) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content) if isinstance(content, bytes) else content.stat().st_size
            with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as source:
                tar.addfile(info, source)
            advance(info.size)
