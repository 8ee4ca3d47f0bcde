"""Which files of the installed PyTorch a slim package holds, decided before anything is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import MissingInstallation
from opsieve.installed import TorchInstall
from opsieve.runtimes.wheel.dropped import DroppedFile, drop_reason
from opsieve.runtimes.wheel.installed_files import InstalledFiles, installed_files


@dataclass(frozen=True, slots=True, order=True)
class ReplacedFile:
    """A file whose bytes are not the installed ones."""

    path: str
    """From site-packages, with `/`."""

    before: int
    """Bytes, as installed."""

    after: int
    """Bytes, in the slim package."""


@dataclass(frozen=True, slots=True)
class PackagePlan:
    """The installed files, sorted into kept and dropped. All paths are from site-packages, with `/`."""

    files: InstalledFiles
    kept: tuple[str, ...]
    dropped: tuple[DroppedFile, ...]
    replacements: Mapping[str, Path]

    def source(self, path: str) -> Path:
        """The file whose bytes go into the package as `path`."""
        return self.replacements.get(path, self.files.site / path)

    @property
    def stock_bytes(self) -> int:
        """Size of the installed package, without bytecode caches."""
        return sum(self.files.size(path) for path in self.files.package) + self._metadata_bytes

    @property
    def kept_bytes(self) -> int:
        """Size of the slim package, but for the few bytes of the new version and RECORD."""
        return sum(self.source(path).stat().st_size for path in self.kept) + self._metadata_bytes

    @property
    def replaced(self) -> tuple[ReplacedFile, ...]:
        """What is replaced, with both sizes."""
        return tuple(
            ReplacedFile(path, self.files.size(path), file.stat().st_size)
            for path, file in sorted(self.replacements.items())
        )

    @property
    def _metadata_bytes(self) -> int:
        return sum(self.files.size(f"{self.files.dist_info}/{name}") for name in self.files.metadata)


def plan_package(install: TorchInstall, replacements: Mapping[str, Path], *, with_headers: bool = False) -> PackagePlan:
    """Sort the installed files into kept and dropped, without reading them.

    `replacements` maps paths from site-packages, such as `torch/lib/libtorch_cpu.so`, to the files that take their
    place. Raises MissingInstallation when a file that must stay, or one to be replaced, is not installed.
    """
    files = installed_files(install)
    reasons = {path: drop_reason(path, with_headers=with_headers) for path in files.package}
    dropped = tuple(DroppedFile(path, files.size(path), reason) for path, reason in reasons.items() if reason)
    kept = tuple(path for path, reason in reasons.items() if reason is None)
    unknown = sorted(set(replacements) - set(kept))
    absent = [path for path in kept if path not in replacements and not (files.site / path).is_file()]
    for missing in (*unknown, *absent):
        raise MissingInstallation(
            "the installed PyTorch does not have this file",
            where=files.site / missing,
            remedy=f"pip install --force-reinstall --no-deps torch=={install.version}",
        )
    return PackagePlan(files, kept, dropped, dict(replacements))
