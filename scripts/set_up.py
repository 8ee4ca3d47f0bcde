"""Set up a virtual environment with PyTorch, this package and a model to try it on; install what the system lacks.

    python3 scripts/set_up.py .venv --torch torch==2.13.0 --model silero-vad==6.2.3 [--extra test]

Needs nothing but Python itself. What is there already is used as it is.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

OLDEST_PYTHON = (3, 11)
TEST_TOOLS = {
    "g++": "g++",
    "gcc": "gcc",
    "ld.bfd": "binutils",
    "readelf": "binutils",
    "ld.gold": "binutils-gold",
    "ld.lld": "lld",
    "ld.mold": "mold",
    "clang++": "clang",
    "flatc": "flatbuffers-compiler",
}
"""What the tests run -> the Debian package that has it (ld.gold: since Debian 13, before that it is in binutils)."""

TEST_HEADERS = {
    "fmt/core.h": "libfmt-dev",
    "cpuinfo.h": "libcpuinfo-dev",
    "flatbuffers/flatbuffers.h": "libflatbuffers-dev",
    "pthreadpool.h": "libpthreadpool-dev",
    "fp16.h": "libfp16-dev",
    "fxdiv.h": "libfxdiv-dev",
    "psimd.h": "libpsimd-dev",
}
"""What PyTorch's sources include, for the tests that build a runtime from them -> the Debian package that has it."""

OPTIONAL = ("binutils-gold", "clang", "mold")
"""Tests of what other compilers and linkers write are skipped where these are not to be had."""

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Read the options and do it all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("venv", type=Path)
    parser.add_argument("--torch", required=True, metavar="REQUIREMENT", help="with pip's options, if any")
    parser.add_argument("--model", required=True, metavar="REQUIREMENT", help="a package that brings a model")
    parser.add_argument("--extra", choices=["test", "docs"], help="what else to install")
    options = parser.parse_args()
    if sys.version_info < OLDEST_PYTHON:
        raise SystemExit(f"opsieve needs Python 3.11 or later; this is {sys.version.split()[0]}. Try PYTHON=python3.12")
    if options.extra == "test":
        install_test_tools()
    make_environment(options.venv)
    pip(options.venv, *shlex.split(options.torch))
    pip(options.venv, "--editable", f"{ROOT}[{options.extra}]" if options.extra else str(ROOT))
    pip(options.venv, "--no-deps", options.model)


def install_test_tools() -> None:
    """Install the compilers and linkers that are missing, as far as we may."""
    missing = sorted(
        {package for tool, package in TEST_TOOLS.items() if shutil.which(tool) is None}
        | {package for header, package in TEST_HEADERS.items() if not Path("/usr/include", header).exists()}
    )
    needed = [package for package in missing if package not in OPTIONAL]
    if needed:
        apt_install(*needed)
    for package in set(missing).difference(needed):
        try:
            apt_install(package)
        except SystemExit as reason:
            say(f"going on without {package}, some tests will be skipped ({reason})")


def make_environment(venv: Path) -> None:
    """Create the virtual environment unless a working one is there."""
    if has_pip(venv / "bin" / "python"):
        return
    if importlib.util.find_spec("ensurepip") is None:  # Debian ships it apart from Python
        apt_install(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    say(f"making {venv} with Python {sys.version.split()[0]}")
    run([sys.executable, "-m", "venv", "--clear", str(venv)])


def has_pip(python: Path) -> bool:
    """Whether this is an interpreter that can install packages."""
    return python.exists() and subprocess.run([python, "-c", "import pip"], check=False).returncode == 0


def pip(venv: Path, *arguments: str) -> None:
    """Install with the environment's pip. Byte code is left to the first import, which needs a quarter of it."""
    say(f"pip install {' '.join(arguments).replace(str(ROOT), '.')}")
    python = str(venv / "bin" / "python")
    run([python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "--quiet", *arguments])


def apt_install(*packages: str) -> None:
    """Install Debian packages, as root or with sudo. Raises SystemExit saying what to do where that is impossible."""
    advice = f"please install: {' '.join(packages)}"
    if shutil.which("apt-get") is None:
        raise SystemExit(advice)
    prefix = [] if os.geteuid() == 0 else ["sudo", "--non-interactive"]
    if prefix and shutil.which("sudo") is None:
        raise SystemExit(f"{advice} (not root, and no sudo)")
    say(f"apt-get install {' '.join(packages)}")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"]
    run([*apt, "update"], advice)
    run([*apt, "install", "--yes", "--no-install-recommends", *packages], advice)


def run(command: list[str], advice: str = "") -> None:
    """Run a command quietly; if it fails, show what it said and end."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.stderr.write(done.stdout[-4000:])
        raise SystemExit(f"failed: {shlex.join(command)}" + (f"\n{advice}" if advice else ""))


def say(text: str) -> None:
    """Tell what takes time, as it begins."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", flush=True)


if __name__ == "__main__":
    main()
