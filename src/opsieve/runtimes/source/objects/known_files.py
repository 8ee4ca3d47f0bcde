"""Facts about headers kept from run to run: thousands of files need not be read again to see that nothing changed.

Safe for the same reason as git's index: a file whose inode, size and times are as before has the content it had, unless
it was read so soon after a change that another one could bear the same time. Such files are not among those known.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import msgspec

from opsieve.files import replacing_file
from opsieve.runtimes.source.objects.files import KnownFile

FORMAT = 1
"""To be raised whenever digests or what counts as an include change."""

MOST_FILES = 50_000
"""Files remembered, about 300 bytes each; those read last stay."""

_LARGEST = 256 << 20
_DECODER = msgspec.msgpack.Decoder(dict[str, KnownFile])


def read_known_files(root: Path) -> dict[str, KnownFile]:
    """What was remembered; nothing if there is nothing or it is damaged."""
    path = _path(root)
    try:
        return _DECODER.decode(path.read_bytes()) if path.stat().st_size <= _LARGEST else {}
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def write_known_files(root: Path, known: dict[str, KnownFile]) -> None:
    """Remember facts, if there are new ones. Of several runs at once the last one's stay. Raises OSError."""
    if known.items() <= read_known_files(root).items():
        return
    latest = dict(itertools.islice(known.items(), max(0, len(known) - MOST_FILES), None))
    try:
        content = msgspec.msgpack.encode(latest)
    except UnicodeEncodeError:
        # A name that is not UTF-8: rare enough to go without.
        return
    with replacing_file(_path(root), force=True) as temporary:
        temporary.write_bytes(content)


def _path(root: Path) -> Path:
    return root / f"headers-{FORMAT}"
