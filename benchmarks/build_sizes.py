"""What `opsieve build` makes of PyTorch for four models: sizes before and after, operators, seconds.

    python -m benchmarks.build_sizes [--no-verify]

Sizes are counted on the files themselves, not taken from what the build reports: the installed package by its RECORD,
the slim one by walking its folder, both without bytecode caches. `opsieve verify` must find all answers identical.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.models import Sample, write_samples
from benchmarks.report import OPSIEVE, empty_cache, parser, report, timed
from opsieve.graph.load import LIBRARY
from opsieve.installed import TorchInstall, find_torch
from opsieve.runtimes.wheel.installed_files import installed_files


@dataclass(frozen=True, slots=True)
class Measured:
    """One build; sizes in bytes."""

    model: str
    operators: int
    library_before: int
    library_after: int
    package_before: int
    package_after: int
    wheel: int
    cold_seconds: float
    cached_seconds: float
    variations: int
    """How many variations `opsieve verify` tried and found identical; 0 when it was not asked."""


def main() -> None:
    """Measure and report."""
    arguments = parser(__doc__)
    arguments.add_argument("--no-verify", action="store_true", help="do not compare the answers (a minute a model)")
    options = arguments.parse_args()
    install = find_torch()
    with tempfile.TemporaryDirectory(prefix="opsieve-sizes-") as folder:
        samples = write_samples(Path(folder) / "models")
        builds = [_measure(sample, install, Path(folder) / "slim", not options.no_verify) for sample in samples]
    first = builds[0]
    stripped = _stripped_size(install)
    rows = [("full PyTorch", "", _mb(first.library_before), _mb(first.package_before), "", "", "", "")]
    if stripped:
        rows.append(("stripped", "", _mb(stripped), "", "", "", "", ""))
    rows += [
        (
            build.model,
            str(build.operators),
            _mb(build.library_after),
            _mb(build.package_after),
            _mb(build.wheel),
            f"{build.cold_seconds:.0f}",
            f"{build.cached_seconds:.0f}",
            str(build.variations or ""),
        )
        for build in builds
    ]
    columns = ("model", "operators", "library", "package", "wheel", "cold", "cached", "identical")
    numbers = {"stripped_library": stripped, "builds": [asdict(build) for build in builds]}
    report(columns, rows, numbers, options.json, "MB (10^6 bytes), seconds")


def _measure(sample: Sample, install: TorchInstall, out: Path, verify: bool) -> Measured:
    command = (OPSIEVE, "build", sample.path, "-o", out, "--force", "--format", "json")
    with empty_cache() as environment:
        cold, _ = timed(command, environment)
        cached, printed = timed(command, environment)
    built = json.loads(printed)
    variations = 0
    if verify:
        _, told = timed((OPSIEVE, "verify", out, *sample.inputs, "--format", "json"))
        variations = sum(len(model["variations"]) for model in json.loads(told)["models"])
    return Measured(
        model=sample.title,
        operators=len(built["operators"]),
        library_before=install.library(LIBRARY).stat().st_size,
        library_after=(out / "python" / "torch" / "lib" / LIBRARY).stat().st_size,
        package_before=_installed_size(install),
        package_after=_folder_size(out / "python"),
        wheel=Path(built["wheel"]).stat().st_size,
        cold_seconds=cold,
        cached_seconds=cached,
        variations=variations,
    )


def _stripped_size(install: TorchInstall) -> int:
    """What everybody tries first: bytes that `strip` leaves of the library, 0 where there is no `strip`."""
    if shutil.which("strip") is None:
        return 0
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run(["strip", "-o", file.name, install.library(LIBRARY)], check=True)
        return Path(file.name).stat().st_size


def _installed_size(install: TorchInstall) -> int:
    files = installed_files(install)
    metadata = (f"{files.dist_info}/{name}" for name in files.metadata)
    return sum((install.site / path).stat().st_size for path in (*files.package, *metadata))


def _folder_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc")


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


if __name__ == "__main__":
    main()
