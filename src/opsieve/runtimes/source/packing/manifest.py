"""What a packed archive says of itself. It is the first member of the tar; every other member is listed in it.

The file is a zstd frame of a tar archive. Measured on objects of PyTorch 2.6.0 (58.7 MB, one core): zstd level 9 with a
window of 128 MB makes 2.7 MB of them in 2.3 s, gzip 6.4 MB in 5.3 s, xz level 3 4.0 MB in 14.7 s.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

import msgspec

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.options import BuildOptions

FORMAT = 1
"""To be raised whenever members or their meaning change."""

MANIFEST = "opsieve-runtime.json"
TREE, GENERATED, WORKSPACE, PREPARED = "tree", "generated", "workspace", "prepared"
ROOTS = (TREE, GENERATED, WORKSPACE, PREPARED)
"""Folders at the top of the archive: the source tree's files that a build reads, generated code, rewritten sources and
configured headers, and the objects."""

LEVEL = 9
WINDOW_LOG = 27

MAX_MANIFEST = 64 << 20
MAX_MEMBERS = 200_000
"""PyTorch 2.6.0 has 12,000."""

MAX_BYTES = 16 * 10**9
"""Unpacked. PyTorch 2.6.0 has about 600 MB."""

_LONGEST_NAME = 1000
_FOLDER = re.compile(r"(generated|associated|prepared)-[0-9a-f]{20}")


class Member(msgspec.Struct, frozen=True):
    """One file; the size is in bytes."""

    size: int
    sha256: str


class CompilerFacts(msgspec.Struct, frozen=True):
    """The compiler that made the objects: `identity` is compared, `description` is told."""

    identity: str
    description: str


class Manifest(msgspec.Struct, frozen=True):
    """The first member."""

    format: int
    made_by: str
    pytorch: str
    fingerprint: str
    """Of the source tree."""

    compiler: CompilerFacts
    options: BuildOptions
    generated: str
    workspace: str
    prepared: str
    """Names of folders in the cache."""

    members: dict[str, Member]


class _AnyFormat(msgspec.Struct):
    format: int


def read_manifest(content: bytes, where: Path) -> Manifest:
    """Check what the first member says. Raises InvalidFile."""
    try:
        found = msgspec.json.decode(content, type=_AnyFormat).format
        if found != FORMAT:
            raise InvalidFile(
                f"the archive has format {found}",
                where=where,
                expected=f"format {FORMAT}",
                remedy="pack it again with this version of opsieve, or use the version that made it",
            )
        manifest = msgspec.json.decode(content, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(f"the archive's list of contents is broken: {error}", where=where) from error
    _check(manifest, where)
    return manifest


def _check(manifest: Manifest, where: Path) -> None:
    sizes = [member.size for member in manifest.members.values()]
    if len(sizes) > MAX_MEMBERS or min(sizes, default=0) < 0 or sum(sizes) > MAX_BYTES:
        raise InvalidFile(
            "the archive is too large", where=where, expected=f"at most {MAX_MEMBERS} files and {MAX_BYTES} bytes"
        )
    wrong = next((name for name in manifest.members if not _is_safe(name)), None)
    if wrong is not None:
        raise InvalidFile(f"the archive would write to {wrong[:80]!r}", where=where, expected="names below its folders")
    folders = (manifest.generated, manifest.workspace, manifest.prepared)
    if not all(_FOLDER.fullmatch(folder) for folder in folders):
        raise InvalidFile("the archive names folders that are none of a build", where=where)


def _is_safe(name: str) -> bool:
    path = PurePosixPath(name)
    return (
        len(name) <= _LONGEST_NAME
        and len(path.parts) > 1
        and path.parts[0] in ROOTS
        and ".." not in path.parts
        and "\0" not in name
        and str(path) == name
    )


def compiler_facts(compiler: Compiler) -> CompilerFacts:
    """The compiler, with the first line of what it says of itself."""
    done = subprocess.run(
        [*compiler.command, "--version"], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    line = next(iter(done.stdout.splitlines()), compiler.path.name)
    return CompilerFacts(compiler.identity, line[:200])
