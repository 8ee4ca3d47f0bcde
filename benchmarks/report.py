"""What all benchmarks share: where they were run, and how they tell what they measured."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from opsieve.cli.output import print_table
from opsieve.installed import TorchInstall, find_torch

OPSIEVE = Path(sys.executable).with_name("opsieve")
"""The command of this environment, as a user starts it."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where the numbers come from."""

    processor: str
    cores: int
    memory_gb: float
    python: str
    torch: str
    date: str


def parser(description: str | None) -> argparse.ArgumentParser:
    """A parser with the option that all benchmarks have."""
    made = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers there")
    return made


def report(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Mapping[str, object],
    file: Path | None,
    title: str | None = None,
) -> None:
    """Print rows of text; with `file`, write `numbers` and the machine as JSON."""
    print_table(columns, rows, right=columns[1:], title=title)
    if file is not None:
        document = {"machine": asdict(this_machine(find_torch())), **numbers}
        file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def this_machine(install: TorchInstall) -> Machine:
    """Describe the machine, without its name."""
    return Machine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        python=platform.python_version(),
        torch=install.version,
        date=time.strftime("%Y-%m-%d"),
    )


def _processor() -> str:
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == "model name"), platform.machine())


def timed(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> tuple[float, str]:
    """Seconds that a command took from its start to its end, and what it printed. It must succeed."""
    begin = time.perf_counter()
    done = subprocess.run(
        list(command), env={**os.environ, **(environment or {})}, stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - begin, done.stdout


@contextmanager
def empty_cache() -> Iterator[dict[str, str]]:
    """The environment in which opsieve finds nothing in its cache."""
    with tempfile.TemporaryDirectory(prefix="opsieve-cache-") as folder:
        yield {"OPSIEVE_CACHE": folder}
