"""Writing a wheel (PyPA "Binary distribution format"): RECORD, file name, and the zip itself, byte for byte
the same for the same content."""

from __future__ import annotations

import csv
import io
import os
import stat
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from opsieve.errors import MissingInstallation
from opsieve.progress import Advance

# Measured on libtorch_cpu.so, one core: level 1 packs 82 MB/s to 38 %, level 3 69 MB/s to 36 %, level 6 28 MB/s to
# 33 %. zlib-ng and ISA-L are several times faster, but what they write depends on the processor they run on.
_LEVEL = 3
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # zip knows no earlier time; a clock would make every wheel different


@dataclass(frozen=True, slots=True, order=True)
class RecordEntry:
    """One line of RECORD."""

    path: str
    digest: str
    """`sha256=` and the digest in URL-safe base64 without padding."""

    size: int


def record_entry(root: Path, path: str) -> RecordEntry:
    """Hash the file `path` under `root`, in constant memory."""
    with (root / path).open("rb") as file:
        digest = urlsafe_b64encode(file_digest(file, "sha256").digest()).rstrip(b"=").decode()
    return RecordEntry(path, f"sha256={digest}", (root / path).stat().st_size)


def record_text(entries: Iterable[RecordEntry], own_path: str) -> str:
    """The text of RECORD: sorted, and itself last, without hash and size."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerows((entry.path, entry.digest, entry.size) for entry in sorted(entries))
    writer.writerow((own_path, "", ""))
    return lines.getvalue()


def wheel_name(version: str, wheel_metadata: str) -> str:
    """The file name for the tags in WHEEL: `torch-<version>-<python>-<abi>-<platform>.whl`.

    Several tags are compressed into one name as the specification says: each part's values joined by dots.
    """
    headers = (line.partition(":") for line in wheel_metadata.splitlines())
    tags = [value.strip().split("-") for name, _, value in headers if name == "Tag"]
    if not tags or any(len(tag) != 3 for tag in tags):
        raise MissingInstallation("WHEEL says no tag", expected="lines such as Tag: cp311-cp311-linux_x86_64")
    parts = (".".join(sorted(set(values))) for values in zip(*tags, strict=True))
    return f"torch-{version}-{'-'.join(parts)}.whl"


def pack(root: Path, paths: Iterable[str], target: Path, advance: Advance) -> None:
    """Zip the files `paths` under `root`, in that order, into `target`; `advance` gets bytes read.

    Needs as much memory as the biggest file, twice.
    """
    with zipfile.ZipFile(target, "w") as archive:
        for path in paths:
            content = (root / path).read_bytes()
            # Not archive.open(member, "w"): that compresses at level 6, whatever level the archive was given.
            archive.writestr(_member(path, (root / path).stat()), content, compresslevel=_LEVEL)
            advance(len(content))


def packing_order(paths: Iterable[str], dist_info: str) -> list[str]:
    """Sorted, metadata last and RECORD at the very end, as the specification recommends."""
    return sorted(paths, key=lambda path: (path.startswith(dist_info), path == f"{dist_info}/RECORD", path))


def _member(path: str, status: os.stat_result) -> zipfile.ZipInfo:
    """The zip entry of a file: fixed time, Unix, and only the executable bit of its mode."""
    member = zipfile.ZipInfo(path, _EARLIEST)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.create_system = 3
    mode = 0o755 if status.st_mode & stat.S_IXUSR else 0o644
    member.external_attr = (stat.S_IFREG | mode) << 16
    return member
