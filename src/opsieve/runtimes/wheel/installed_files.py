"""The files of the installed PyTorch wheel, as its own RECORD lists them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path, PurePosixPath

from opsieve.errors import MissingInstallation
from opsieve.installed import TorchInstall

_BYTECODE = "__pycache__"

# What an installer writes beside the wheel's own files (PyPA, "Recording installed projects").
_WRITTEN_BY_INSTALLERS = frozenset({"INSTALLER", "REQUESTED", "RECORD", "direct_url.json"})


@dataclass(frozen=True, slots=True)
class InstalledFiles:
    """What the wheel brought: package files and metadata files, paths with `/` from site-packages, sorted."""

    site: Path
    dist_info: str
    """Name of the metadata folder, such as `torch-2.13.0+cpu.dist-info`."""

    package: tuple[str, ...]
    """Without bytecode caches, console scripts and metadata."""

    metadata: tuple[str, ...]
    """Names inside `dist_info`, without what installers add."""

    def size(self, path: str) -> int:
        """Bytes of a package file; 0 for one that somebody has deleted."""
        file = self.site / path
        return file.stat().st_size if file.is_file() else 0


def installed_files(install: TorchInstall) -> InstalledFiles:
    """List the files of `install` without reading them.

    Raises MissingInstallation when torch was not installed from a wheel, so that nobody knows its files.
    """
    distribution = next(iter(distributions(name="torch", path=[str(install.site)])), None)
    listed = distribution.files if distribution is not None else None
    if distribution is None or not listed:
        raise MissingInstallation(
            "the list of PyTorch's files (RECORD) is missing",
            where=install.site,
            expected="a torch that was installed from a wheel, by pip or uv",
            remedy="pip install --force-reinstall --no-deps torch==2.13.0",
        )
    paths = sorted({str(path) for path in listed if _belongs(path)})
    dist_info = _metadata_folder(paths, install.site)
    prefix = f"{dist_info}/"
    names = (path.removeprefix(prefix) for path in paths if path.startswith(prefix))
    return InstalledFiles(
        site=install.site,
        dist_info=dist_info,
        package=tuple(path for path in paths if not path.startswith(prefix)),
        metadata=tuple(name for name in names if name not in _WRITTEN_BY_INSTALLERS),
    )


def _belongs(path: PurePosixPath) -> bool:
    """Console scripts lie outside site-packages (`../../../bin/torchrun`): installers make them anew."""
    return not path.is_absolute() and not {"..", _BYTECODE} & set(path.parts)


def _metadata_folder(paths: list[str], site: Path) -> str:
    """The folder that holds METADATA and WHEEL; how its name spells the version is up to the wheel's builder."""
    listed = set(paths)
    folders = [path.removesuffix("/METADATA") for path in paths if path.endswith(".dist-info/METADATA")]
    if len(folders) != 1 or f"{folders[0]}/WHEEL" not in listed:
        raise MissingInstallation(
            "PyTorch's RECORD names no METADATA and WHEEL of its own",
            where=site,
            expected="a torch that was installed from a wheel, by pip or uv",
        )
    return folders[0]
