"""The PyTorch package around slim libraries: a folder for PYTHONPATH and a wheel for pip."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.files import replacing_file, replacing_folder
from opsieve.installed import TorchInstall
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.wheel.dropped import DroppedFile
from opsieve.runtimes.wheel.local_version import (
    metadata_with_version,
    slim_version,
    version_py_with_version,
    wheel_with_generator,
)
from opsieve.runtimes.wheel.package_plan import PackagePlan, ReplacedFile, plan_package
from opsieve.runtimes.wheel.wheel_file import (
    RecordEntry,
    pack,
    packing_order,
    record_entry,
    record_text,
    wheel_name,
)

PYTHON_FOLDER = "python"
"""Name of the folder, inside the output, that goes onto PYTHONPATH."""

_VERSION_PY = "torch/version.py"


@dataclass(frozen=True, slots=True)
class PackageReport:
    """What `assemble` wrote. Sizes are bytes of file content, without bytecode caches."""

    version: str
    folder: Path
    """For PYTHONPATH: holds `torch`, `torchgen`, `functorch` and the metadata."""

    wheel: Path | None
    stock_bytes: int
    kept_bytes: int
    dropped: tuple[DroppedFile, ...]
    replaced: tuple[ReplacedFile, ...]


@dataclass(frozen=True, slots=True)
class _Described:
    """A copied package that has its version and metadata."""

    version: str
    dist_info: str
    entries: tuple[RecordEntry, ...]
    """Every file, RECORD too."""


def assemble(
    install: TorchInstall,
    replacements: Mapping[str, Path],
    out_folder: Path,
    *,
    with_headers: bool = False,
    wheel: bool = True,
    force: bool = False,
    progress: Progress = SILENT,
) -> PackageReport:
    """Write `out_folder/python` and, unless `wheel` is false, `out_folder/torch-<version>-<tags>.whl`.

    `replacements` maps paths from site-packages, such as `torch/lib/libtorch_cpu.so`, to the files that take their
    place. The same inputs give the same bytes. Installed files are copied, never linked, so that writing to the
    output cannot change them. With `force` an earlier folder and earlier wheels of ours are replaced; without it,
    raises OutputExists when something is in the way. Raises MissingInstallation when the installation is incomplete.
    """
    plan = plan_package(install, replacements, with_headers=with_headers)
    folder = out_folder / PYTHON_FOLDER
    with replacing_folder(folder, force=force) as root:
        _copy_all(plan, root, progress)
        described = _describe(root, plan, install.version)
        wheel_path = _pack(root, described, out_folder, force, progress) if wheel else None
    _remove_earlier_wheels(out_folder, force, wheel_path)
    return PackageReport(
        version=described.version,
        folder=folder,
        wheel=wheel_path,
        stock_bytes=plan.stock_bytes,
        kept_bytes=sum(entry.size for entry in described.entries),
        dropped=plan.dropped,
        replaced=plan.replaced,
    )


def _copy_all(plan: PackagePlan, root: Path, progress: Progress) -> None:
    with progress.stage("copying the package", len(plan.kept)) as advance:
        for path in plan.kept:
            _copy(plan.source(path), root / path)
            advance(1)


def _copy(source: Path, target: Path) -> None:
    """Copy content and mode, made writable. Hashes are taken from the copy: nobody changes it in between."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(source.stat().st_mode & 0o777 | 0o600)


def _describe(root: Path, plan: PackagePlan, stock_version: str) -> _Described:
    """Name the copied content by its hash, and write that name wherever a version is told."""
    content = {path: record_entry(root, path) for path in plan.kept}
    version = slim_version(stock_version, {path: entry.digest for path, entry in content.items()})
    dist_info = f"torch-{version}.dist-info"
    metadata = [f"{dist_info}/{name}" for name in plan.files.metadata]
    for name, path in zip(plan.files.metadata, metadata, strict=True):
        _copy(plan.files.site / plan.files.dist_info / name, root / path)
    _rewrite(root / _VERSION_PY, lambda text: version_py_with_version(text, version))
    _rewrite(root / dist_info / "METADATA", lambda text: metadata_with_version(text, version))
    _rewrite(root / dist_info / "WHEEL", wheel_with_generator)

    content.update({path: record_entry(root, path) for path in (_VERSION_PY, *metadata)})
    record = f"{dist_info}/RECORD"
    (root / record).write_text(record_text(content.values(), record), encoding="utf-8")
    return _Described(version, dist_info, (*content.values(), record_entry(root, record)))


def _rewrite(file: Path, change: Callable[[str], str]) -> None:
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")


def _pack(root: Path, described: _Described, out_folder: Path, force: bool, progress: Progress) -> Path:
    """Zip the finished folder into a wheel beside it."""
    wheel_metadata = (root / described.dist_info / "WHEEL").read_text(encoding="utf-8")
    target = out_folder / wheel_name(described.version, wheel_metadata)
    paths = packing_order((entry.path for entry in described.entries), described.dist_info)
    total = sum(entry.size for entry in described.entries)
    with (
        progress.stage("packing the wheel", total) as advance,
        replacing_file(target, force=force) as temporary,
    ):
        pack(root, paths, temporary, advance)
    return target


def _remove_earlier_wheels(out_folder: Path, force: bool, wheel: Path | None) -> None:
    """An earlier wheel has another hash in its name: it would stay, and `pip install DIR/*.whl` would see two."""
    for earlier in out_folder.glob("torch-*opsieve.h*.whl") if force else ():
        if earlier != wheel:
            earlier.unlink()
