"""The guard in processes that have signal handlers of their own, several threads, or several slim libraries."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from scripts import build_guard

from opsieve.runtimes.wheel.library.guard import table
from opsieve.runtimes.wheel.library.slim import slim_library
from tests.functional.runtimes.library.sample_library import SOURCES, Sample, build_sample

REPORT = "function: removed_unlisted(int)"


@pytest.fixture(scope="module", params=["as shipped", "compiled afresh"])
def slim(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two slim libraries and the programs, the guard as it is in the package and newly compiled."""
    sample = build_sample(tmp_path_factory.mktemp("sample"), "gold")
    folder = sample.folder / "slim"
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled afresh":
            build_guard.build(sample.folder / "guard.bin")
            code = (sample.folder / "guard.bin").read_bytes()
            patch.setattr("opsieve.runtimes.wheel.library.guard.install.guard_code", lambda: code)
        make_slim(sample, folder)
    command = ["g++", "-O1", "-pthread", SOURCES / "handlers.cpp", "-ldl", "-o", folder / "handlers"]
    subprocess.run(command, check=True)
    return folder


def make_slim(sample: Sample, folder: Path) -> None:
    for name in ("libsample.so", "libsecond.so"):
        slim_library(sample.elf(), sample.plan(), folder / name)


def run(slim: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = {
        "LIBRARY": str(slim / "libsample.so"),
        "SECOND": str(slim / "libsecond.so"),
        "LD_LIBRARY_PATH": str(slim.parent),
    }
    return subprocess.run([slim / "handlers", *arguments], capture_output=True, text=True, env=variables, check=False)


@pytest.mark.parametrize(
    ("case", "output"),
    [
        ("handler first, removed code", ""),
        ("handler last, removed code", "handler ran\n"),
        ("handler that goes on", "null\nnull\nwent on\n"),
        ("ignored sent signal", "went on\n"),
        ("thread", ""),
        ("closed and opened again", ""),
    ],
)
def test_removed_code_is_named(slim: Path, case: str, output: str) -> None:
    done = run(slim, case)
    assert REPORT in done.stderr
    assert (done.returncode, done.stdout) == (86, output)


@pytest.mark.parametrize(
    ("case", "number", "output"),
    [
        ("handler first, other fault", signal.SIGSEGV, "handler ran\n"),
        ("handler last, other fault", signal.SIGSEGV, "handler ran\n"),
        ("no handler, other fault", signal.SIGSEGV, ""),
        ("no handler, trap", signal.SIGTRAP, ""),
        ("sent signal", signal.SIGSEGV, ""),
        ("stack overflow", signal.SIGSEGV, "handler ran\n"),
        ("closed library", signal.SIGSEGV, ""),
    ],
)
def test_other_faults_end_the_process_as_without_the_guard(
    slim: Path, case: str, number: signal.Signals, output: str
) -> None:
    done = run(slim, case)
    assert (done.returncode, done.stdout, done.stderr) == (-number, output, "")


def test_a_forked_child_has_the_guard(slim: Path) -> None:
    done = run(slim, "forked")
    assert REPORT in done.stderr
    assert (done.returncode, done.stdout) == (0, "child ended with 86\n")


@pytest.mark.parametrize("which", ["1", "2"])
def test_two_slim_libraries_each_name_their_own(slim: Path, which: str) -> None:
    done = run(slim, "both libraries", which)
    assert REPORT in done.stderr
    assert done.returncode == 86


def test_the_shipped_code_was_built_from_these_sources() -> None:
    assert f"source {build_guard.digest()}".encode() in table.guard_code()


@pytest.mark.parametrize("closed", ["2", "1,2"])
def test_reports_do_not_need_an_open_error_output(slim: Path, closed: str) -> None:
    """The process ends all the same when nobody can read what it says."""
    redirections = " ".join(f"{number}>&-" for number in closed.split(","))
    command = f"exec {slim / 'handlers'} thread {redirections}"
    variables = {**os.environ, "LIBRARY": str(slim / "libsample.so"), "LD_LIBRARY_PATH": str(slim.parent)}
    assert subprocess.run(["sh", "-c", command], env=variables, check=False).returncode == 86
