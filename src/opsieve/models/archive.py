"""Zip archives of models, read within limits. Weights are members nobody asks for, so they are never read."""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import InvalidModel

MAX_MEMBERS = 200_000
"""A large language model in one file per tensor has a few thousand."""

MAX_DIRECTORY_BYTES = 32 << 20
"""zipfile reads the central directory in one piece, so a lying one must be refused before that."""

MAX_READ_BYTES = 128 << 20
"""All that one archive may make us read, after decompression. The graph of a large language model takes 20 MiB."""

_PIECE = 1 << 20
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1
# What zipfile and zlib raise on broken bytes, found by mutating real files. RuntimeError: encrypted, or a newer zip.
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, ValueError, OverflowError, RuntimeError)


@contextmanager
def open_archive(path: Path) -> Iterator[ModelArchive]:
    """Open the zip file at `path`. Raises InvalidModel when it is broken or breaks a limit."""
    with open_regular(path) as file:
        try:
            source = zipfile.ZipFile(_BoundedReads(file, path))
        except _BROKEN as error:
            raise InvalidModel(
                f"the zip archive is broken or cut off ({error})",
                where=path,
                remedy="get the file again; its end is missing or damaged",
            ) from error
        with source:
            yield ModelArchive(path, source, _members(path, source))


class ModelArchive:
    """The members of one model archive, by their name below the archive's top folder."""

    def __init__(self, path: Path, source: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> None:
        self.path = path
        self._source = source
        self._members = members
        self._left = MAX_READ_BYTES

    @property
    def names(self) -> tuple[str, ...]:
        """All member names, in the order of the file."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def read(self, name: str) -> bytes:
        """The content of one member, its checksum verified.

        Raises InvalidModel when it is missing, damaged, encrypted or too large.
        """
        member = self._members.get(name)
        if member is None:
            raise self.fault("the archive has no such member", name)
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _READABLE:
            raise self.fault("this member is encrypted or compressed in a way PyTorch does not read", name)
        if member.file_size > self._left:
            raise self.fault(
                f"this member would unpack to {member.file_size} bytes, more than the limit",
                name,
                expected=f"at most {MAX_READ_BYTES >> 20} MiB of code and tables in one archive",
            )
        try:
            # zipfile stops at the declared size; a member that holds more fails its checksum.
            with self._source.open(member) as stream:
                content = b"".join(iter(lambda: stream.read(_PIECE), b""))
        except _BROKEN as error:
            raise self.fault(f"this member is damaged ({error})", name) from error
        self._left -= len(content)
        return content

    def read_text(self, name: str) -> str:
        """The content of one member as UTF-8 text. Raises InvalidModel as `read` does."""
        try:
            return self.read(name).decode()
        except UnicodeDecodeError as error:
            raise self.fault(f"this member is not UTF-8 text (byte {error.start})", name) from error

    def file_version(self) -> int | None:
        """How old the operators in the file are. PyTorch writes new versions to `.data/version`, old to `version`."""
        for name in (".data/version", "version"):
            if name in self:
                text = self.read_text(name).strip()
                return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
        return None

    def fingerprint(self) -> str:
        """A hash over name, size and CRC-32 of every member: covers the weights without reading them.

        The CRCs are those the writer put into the directory. torch.jit.save and torch.export.save always do.
        """
        digest = hashlib.sha256()
        for name, member in sorted(self._members.items()):
            digest.update(f"{name}\0{member.file_size}\0{member.CRC}\n".encode())
        return f"zip-crc:{digest.hexdigest()}"

    def fault(self, problem: str, name: str, *, expected: str | None = None) -> InvalidModel:
        """An InvalidModel that points at the member `name`."""
        return InvalidModel(problem, where=f"{self.path}: {name}", expected=expected)


@dataclass(frozen=True, slots=True)
class _BoundedReads:
    """What zipfile needs of a file, refusing the one huge read that a false directory size would cause."""

    file: io.BufferedReader
    path: Path

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY_BYTES:
            raise InvalidModel(
                f"the zip directory claims {size} bytes",
                where=self.path,
                expected=f"at most {MAX_DIRECTORY_BYTES >> 20} MiB",
            )
        return self.file.read(size)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()

    def seekable(self) -> bool:
        return True


def open_regular(path: Path) -> io.BufferedReader:
    """Open `path` for reading, refusing pipes and devices, which could block or never end."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InvalidModel("this is not a regular file", where=path)
        return path.open("rb")
    except OSError as error:
        raise InvalidModel(f"cannot open the model: {error.strerror}", where=path) from error


def _members(path: Path, source: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The members without the top folder that PyTorch puts around them (named after the file it was saved as)."""
    infos = source.infolist()
    if len(infos) > MAX_MEMBERS:
        raise InvalidModel(f"the archive has {len(infos)} members", where=path, expected=f"at most {MAX_MEMBERS}")
    top = _top_folder(infos)
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        _refuse_escape(path, info.orig_filename)
        name = info.filename.removeprefix(top)
        if name in members:
            # Two readers may pick different ones, and what we describe must be what PyTorch runs.
            raise InvalidModel("the archive has two members of this name", where=f"{path}: {name}")
        members[name] = info
    return members


def _top_folder(infos: list[zipfile.ZipInfo]) -> str:
    first, slash, _ = infos[0].filename.partition("/") if infos else ("", "", "")
    return first + slash if slash else ""


def _refuse_escape(path: Path, name: str) -> None:
    # We never write members out, but a name like this says that the file was made to harm whoever does.
    parts = name.replace("\\", "/").split("/")
    if name.startswith("/") or ".." in parts or "\0" in name or name[1:3] in (":/", ":\\"):
        raise InvalidModel(
            "a member name points outside of the archive",
            where=f"{path}: {name[:200]!r}",
            remedy="do not unpack this file; get the model again from a source you trust",
        )
