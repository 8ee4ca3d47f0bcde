"""What `--prepare` leaves: every object of a tree for one set of options, and what a link wants to know of them.

A prepared archive is a folder inside the workspace's folder, named by its content and never changed afterwards, and a
small file that says which one is current. So a link that goes on while another process prepares anew keeps its objects.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import msgspec
from filelock import FileLock

from opsieve.errors import InvalidFile
from opsieve.files import replacing_file, replacing_folder
from opsieve.runtimes.source.options import BuildOptions
from opsieve.runtimes.source.references import References
from opsieve.runtimes.source.stamps import Stamps
from opsieve.runtimes.source.workspace import Workspace

FORMAT = 1
"""To be raised whenever the record or the references change: older archives are then made anew, in seconds."""

RECORD = "record.json"
REFERENCES = "references"
OBJECTS = "objects"

ENTRY = "main"
"""What the C library's start-up code calls."""

_MAX_RECORD = 64 << 20
_ABANDONED_AFTER = 24 * 3600
"""Seconds after which no link can still be using an archive that is not the current one."""


class Record(msgspec.Struct, frozen=True):
    """What is written of an archive, as JSON."""

    format: int
    options: BuildOptions
    objects: dict[str, int]
    """Source name -> size of its object in bytes."""

    left_out: dict[str, str]
    """Source name -> the compiler's first message."""

    stand_ins: dict[str, str]
    """Symbol that no object defines -> the source that would, if it was not left out."""

    seeds: dict[str, str]
    """Source name -> why it is linked whatever refers to it."""

    stamps: Stamps | None
    """Of the headers that do not belong to the tree. None in an archive that another machine made: then it is taken
    at its word."""


@dataclass(frozen=True)
class PreparedObjects:
    """A prepared archive on disk."""

    folder: Path
    record: Record

    @cached_property
    def objects(self) -> Mapping[str, Path]:
        """Source name -> object."""
        return {name: object_path(self.folder, name) for name in self.record.objects}

    @cached_property
    def references(self) -> References:
        """What refers to what. Raises InvalidFile when it cannot be read."""
        return References.load(self.folder / REFERENCES)


def object_path(folder: Path, name: str) -> Path:
    """Where the object of a source is in an archive. Raises InvalidFile for a name that leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or not name or ".." in path.parts or "\0" in name:
        raise InvalidFile(f"{name[:80]!r} is no name of a source", where=folder)
    return folder / OBJECTS / f"{name}.o"


def load_prepared(workspace: Workspace) -> PreparedObjects | None:
    """The current archive for a workspace; None if there is none, or one for other headers or of another version.

    Also None when flags ask for this very processor (`-march=native`): only the compiler knows which one that is, and a
    home folder may be shared by several.
    """
    if native_flags(workspace.options):
        return None
    try:
        folder = workspace.folder / _pointer(workspace.folder, workspace.options).read_text(encoding="utf-8").strip()
        prepared = read_prepared(folder)
    except (OSError, InvalidFile, UnicodeDecodeError, ValueError):
        return None
    record = prepared.record
    known = record.objects.keys() | record.left_out.keys()
    if record.options != workspace.options or not workspace.sources.keys() <= known:
        return None
    if record.stamps is not None and not record.stamps.hold():
        return None
    return prepared


def native_flags(options: BuildOptions) -> tuple[str, ...]:
    """The flags that make objects for the processor of the machine that compiles."""
    return tuple(flag for flag in options.extra_flags if flag.endswith("=native"))


def read_prepared(folder: Path) -> PreparedObjects:
    """An archive in a folder. Raises InvalidFile when it is none, is of another version or lacks an object."""
    path = folder / RECORD
    try:
        if path.stat().st_size > _MAX_RECORD:
            raise InvalidFile("the record of compiled objects is too large", where=path)
        record = msgspec.json.decode(path.read_bytes(), type=Record)
        if record.format != FORMAT:
            raise InvalidFile("these objects were prepared by another version", where=path, expected=f"format {FORMAT}")
        for name, size in record.objects.items():
            if object_path(folder, name).stat().st_size != size:
                raise InvalidFile("a compiled object is damaged", where=object_path(folder, name))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidFile(f"there are no prepared objects: {error}", where=path) from error
    return PreparedObjects(folder, record)


def save_prepared(
    workspace: Workspace,
    objects: Mapping[str, Path],
    references: References,
    record: Record,
) -> PreparedObjects:
    """Write an archive of these objects, without a second copy of them where the disk allows, and make it current.

    The paths of `objects` have to stay valid during the call.
    """
    name = f"prepared-{_digest(msgspec.json.encode(record), *(str(path).encode() for path in objects.values()))}"
    folder = workspace.folder / name
    with FileLock(workspace.folder / "prepared.lock"):
        if not _is_whole(folder):
            with replacing_folder(folder, force=True) as temporary:
                (temporary / OBJECTS).mkdir()
                for source, path in objects.items():
                    _link_or_copy(path, object_path(temporary, source))
                references.save(temporary / REFERENCES)
                (temporary / RECORD).write_bytes(msgspec.json.encode(record))
        make_current_for(workspace.folder, workspace.options, name)
        _remove_old(workspace)
    return PreparedObjects(folder, record)


def make_current_for(folder: Path, options: BuildOptions, name: str) -> None:
    """Let the archive of this name be the one that is loaded for these options in a workspace's folder."""
    pointer = _pointer(folder, options)
    with suppress(OSError):
        # From now on it is no longer the current one: its time tells when it may go.
        os.utime(folder / pointer.read_text(encoding="utf-8").strip())
    with replacing_file(pointer, force=True) as temporary:
        temporary.write_text(f"{name}\n", encoding="utf-8")


def _pointer(folder: Path, options: BuildOptions) -> Path:
    return folder / f"prepared-{_digest(msgspec.json.encode(options))}.current"


def _is_whole(folder: Path) -> bool:
    try:
        read_prepared(folder)
    except InvalidFile:
        return False
    return True


def _remove_old(workspace: Workspace) -> None:
    current = {path.read_text(encoding="utf-8").strip() for path in workspace.folder.glob("prepared-*.current")}
    for folder in workspace.folder.glob("prepared-*"):
        with suppress(OSError):
            old = time.time() - folder.stat().st_mtime > _ABANDONED_AFTER
            if folder.is_dir() and folder.name not in current and old:
                shutil.rmtree(folder)


def _link_or_copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"\0".join(parts), digest_size=10).hexdigest()
