"""Unpacking a source archive that may be hostile."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from opsieve.errors import InvalidFile
from opsieve.progress import SILENT, Advance, Progress

MAX_MEMBERS = 300_000
"""PyTorch 2.6.0 in Debian has 17,000 files and folders."""

MAX_BYTES = 8 * 10**9
"""Unpacked. PyTorch 2.6.0 in Debian has 136 MB, with all its submodules about 1.5 GB."""


def unpack(archive: Path, folder: Path, progress: Progress = SILENT) -> Path:
    """Unpack a (compressed) tar archive into the empty `folder`, and return the one folder at its top.

    Links and special files are left out: no build reads them, and without links no name can lead out of `folder`.
    Raises InvalidFile for a broken archive, for names that lead out, for more than MAX_MEMBERS or MAX_BYTES, and for an
    archive with more than one name at its top. What was unpacked before the fault is then still there.
    """
    try:
        with (
            archive.open("rb") as stream,
            progress.stage(f"unpacking {archive.name}", archive.stat().st_size) as advance,
            tarfile.open(fileobj=stream, mode="r:*") as tar,
        ):
            # Python before 3.11.4 has no filters; what passes _safe() is safe without.
            options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(folder, members=_safe(tar, stream, advance), **options)  # type: ignore[arg-type]
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise InvalidFile(f"the archive is broken: {error}", where=archive) from error
    tops = list(folder.iterdir())
    if len(tops) != 1 or not tops[0].is_dir():
        raise InvalidFile("the archive holds no single folder", where=archive)
    return tops[0]


def _safe(tar: tarfile.TarFile, stream: BinaryIO, advance: Advance) -> Iterator[tarfile.TarInfo]:
    size = position = 0
    for number, member in enumerate(tar):
        path = PurePosixPath(member.name)
        size += member.size
        if path.is_absolute() or ".." in path.parts:
            raise InvalidFile("the archive would write outside its folder", where=f"{tar.name!s}, {member.name!r}")
        if number >= MAX_MEMBERS or size > MAX_BYTES:
            raise InvalidFile("the archive is too large", where=str(tar.name), expected=f"at most {MAX_BYTES} bytes")
        if member.isreg() or member.isdir():
            yield member
        advance(stream.tell() - position)
        position = stream.tell()
