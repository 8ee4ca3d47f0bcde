"""PyTorch's source as Debian packages it, through the machine's own apt."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import InvalidSourceTree, MissingInstallation, OpsieveError, OutputExists, SourceUnavailable
from opsieve.files import replacing_folder
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.apt_entries import AptEntry, archives_with
from opsieve.runtimes.source.private_apt import PrivateApt, SourceFile
from opsieve.runtimes.source.tree import ORIGIN_FILE, SourceTree, parse_version
from opsieve.runtimes.source.unpack import unpack

PACKAGE = "pytorch"

SUITES = ("stable", "oldstable", "testing", "unstable", "oldoldstable")
"""Asked after the machine's own suite, in this order. An archive that lacks one says so quickly."""

OS_RELEASE = Path("/etc/os-release")


@dataclass(frozen=True, slots=True)
class Got:
    """What `get_source` did."""

    tree: SourceTree
    package: str | None
    """Name and version of the source package; None if the tree was there already."""

    downloaded: int
    """Bytes."""


@dataclass(frozen=True, slots=True)
class _Found:
    version: str
    archive: SourceFile


def get_source(version: str, target: Path, *, force: bool = False, progress: Progress = SILENT) -> Got:
    """Put the source tree of PyTorch `version` into the new folder `target`, from Debian's source package.

    Nothing of the system is changed. A tree of that version that is there already is left alone. `force` replaces
    another tree, but only one that came from here: a clone may hold somebody's work.
    Raises SourceUnavailable without apt, without the version in any suite, and if the download or the disk fails;
    OutputExists if something else is in the way.
    """
    wanted, target = _release(version), target.expanduser()
    present = _present(wanted, target, force)
    if present:
        return Got(present, None, 0)
    with _telling_how_to_clone(version, target), tempfile.TemporaryDirectory(prefix="opsieve-") as folder:
        apt = PrivateApt.in_folder(Path(folder, "apt"))
        found = _find(apt, wanted, progress)
        archive = Path(folder, found.archive.name)
        apt.download(found.archive, archive, progress)
        _unpack(archive, wanted, target, progress)
    return Got(SourceTree.open(target), f"{PACKAGE} {found.version}", found.archive.size)


def _release(version: str) -> str:
    numbers = parse_version(version)
    if numbers is None or not re.fullmatch(r"v?\d+\.\d+\.\d+", version):
        raise SourceUnavailable(f"{version!r} is no release of PyTorch", expected="three numbers, such as 2.6.0")
    return ".".join(map(str, numbers))


def _present(version: str, target: Path, force: bool) -> SourceTree | None:
    """The tree that `target` already is; None if it may be written. Raises OutputExists if it may not."""
    if not target.exists() and not target.is_symlink():
        return None
    try:
        tree = SourceTree.open(target)
    except InvalidSourceTree:
        tree = None
    if tree and tree.version == version and not force:
        return tree
    if not force:
        what = f"PyTorch {tree.version} is there already" if tree else "the output exists already"
        raise OutputExists(what, where=target, remedy="choose another name, or give --force")
    if not target.is_dir() or not ((target / ORIGIN_FILE).is_file() or not any(target.iterdir())):
        raise OutputExists(
            "this did not come from `opsieve source get`, and is not replaced",
            where=target,
            remedy="choose another name, or move it away",
        )
    return None


@contextmanager
def _telling_how_to_clone(version: str, target: Path) -> Iterator[None]:
    """Turn faults of apt, the archive and the disk into SourceUnavailable, with the other way to a tree."""
    clone = (
        f"git clone --depth 1 --recursive --shallow-submodules --branch v{version.removeprefix('v')} "
        f"https://github.com/pytorch/pytorch {target}"
    )
    try:
        yield
    except OutputExists:
        raise
    except OpsieveError as error:
        remedy = f"{error.remedy}; or {clone}" if error.remedy else clone
        raise SourceUnavailable(error.problem, where=error.where, expected=error.expected, remedy=remedy) from error
    except OSError as error:
        raise SourceUnavailable(f"the source cannot be written: {error.strerror}", where=error.filename) from error


def _find(apt: PrivateApt, version: str, progress: Progress) -> _Found:
    """The source package of `version` in the first suite that has it."""
    own = _codename()
    suites = tuple(dict.fromkeys((own, *SUITES) if own else SUITES))
    archives = archives_with(apt.entries_of_the_machine(), suites)
    if not archives:
        raise MissingInstallation("apt's source lists name no archive of this distribution", where=own or None)
    there: dict[str, str] = {}
    trouble: SourceUnavailable | None = None
    with progress.stage("asking the package archive") as advance:
        for archive in archives:
            try:
                for suite in _suites_of(apt, archive, suites):
                    advance(1)
                    for found in apt.versions(PACKAGE):
                        if is_release(found, version):
                            return _Found(found, _original(apt, found))
                        there.setdefault(found, suite)
            except SourceUnavailable as error:  # an archive of somebody else, perhaps; the next may have it
                trouble = trouble or error
    if trouble:
        raise trouble
    raise SourceUnavailable(
        f"no suite of the package archive has PyTorch {version}",
        expected=", ".join(f"{found} ({suite})" for found, suite in there.items()) or None,
    )


def _suites_of(apt: PrivateApt, archive: AptEntry, suites: tuple[str, ...]) -> Iterator[str]:
    """The suites that the archive has, each once, its index being the one that apt reads now."""
    known: set[str] = set()
    for suite in suites:
        if suite not in known and apt.update(archive, suite):
            known |= {suite, *apt.names_of_the_suite()}
            yield suite


def is_release(package_version: str, version: str) -> bool:
    """Is `2.6.0+dfsg-7` (epoch, repackaging and Debian's own number aside) the release 2.6.0?"""
    return (
        re.fullmatch(rf"(\d+:)?{re.escape(version)}(\+(dfsg|ds|repack)[\d.]*)?(-[^-]+)?", package_version) is not None
    )


def _original(apt: PrivateApt, package_version: str) -> SourceFile:
    # Debian's own changes (.debian.tar.xz) are for Debian's build; ours needs none of them.
    for file in apt.files(PACKAGE, package_version):
        if re.search(r"\.orig\.tar\.(xz|gz|bz2)$", file.name) and "/" not in file.name:
            return file
    raise SourceUnavailable(f"{PACKAGE} {package_version} has no archive with a SHA-256 in the index")


def _unpack(archive: Path, version: str, target: Path, progress: Progress) -> None:
    # Beside the target, so that the last step is a rename. An empty folder may be replaced without being told to.
    with replacing_folder(target, force=target.exists()) as temporary:
        unpacking = temporary / "unpacking"
        unpacking.mkdir()
        top = unpack(archive, unpacking, progress)
        for entry in list(top.iterdir()):
            if entry.name == unpacking.name:
                raise SourceUnavailable("the archive holds no PyTorch source tree", where=archive.name)
            entry.rename(temporary / entry.name)
        top.rmdir()
        unpacking.rmdir()
        (temporary / ORIGIN_FILE).write_text(f"{version}\n")
        tree = SourceTree.open(temporary)
        if tree.version != version:
            raise SourceUnavailable(f"the archive holds PyTorch {tree.version}", where=archive.name, expected=version)


def _codename() -> str | None:
    try:
        found = re.search(r'^VERSION_CODENAME="?([a-z0-9-]+)"?$', OS_RELEASE.read_text(), re.M)
    except OSError:
        return None
    return found[1] if found else None
