"""A copy of an installed package made of links, with some files swapped: costs no space and no time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath


def mirror_package(package: Path, site: Path, replacements: Mapping[str, Path]) -> Path:
    """Make `site/<name of package>` look like `package`, but with other files in some places; return it.

    `replacements` maps paths below the package, such as `lib/libtorch_cpu.so`, to the files that stand there instead.
    With `site` on PYTHONPATH the mirrored package is imported. Only the folders on the way to a replacement are real,
    everything else is one link, so whoever writes below the mirror writes into the installed package: don't.

    Libraries find each other in the mirror, because glibc takes $ORIGIN from the path that a library was opened with
    and does not resolve links in it.
    """
    target = site / package.name
    _mirror(package.resolve(), target, {PurePosixPath(path): file for path, file in replacements.items()})
    return target


def _mirror(source: Path, target: Path, replacements: Mapping[PurePosixPath, Path]) -> None:
    target.mkdir(parents=True)
    deeper: dict[str, dict[PurePosixPath, Path]] = {}
    for path, file in replacements.items():
        if len(path.parts) == 1:
            (target / path).symlink_to(file.resolve())
        else:
            deeper.setdefault(path.parts[0], {})[PurePosixPath(*path.parts[1:])] = file
    for entry in source.iterdir():
        if entry.name in deeper:
            _mirror(entry, target / entry.name, deeper.pop(entry.name))
        elif PurePosixPath(entry.name) not in replacements:
            (target / entry.name).symlink_to(entry)
