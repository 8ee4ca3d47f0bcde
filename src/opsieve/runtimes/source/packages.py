"""The names that package managers have for what a source build needs."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Need(StrEnum):
    """Something that can be installed. The value is its usual name."""

    COMPILER = "g++"
    LINKER = "lld"
    AR = "binutils"
    FMT = "fmt"
    CPUINFO = "cpuinfo"
    OPENBLAS = "OpenBLAS"
    SLEEF = "sleef"
    FLATBUFFERS = "flatbuffers"
    FLATC = "flatc"
    PTHREADPOOL = "pthreadpool"
    FP16 = "FP16"
    FXDIV = "FXdiv"
    PSIMD = "psimd"
    PYYAML = "PyYAML"
    TYPING_EXTENSIONS = "typing_extensions"


PYTHON_NEEDS = frozenset({Need.PYYAML, Need.TYPING_EXTENSIONS})
"""Installed by pip into the running interpreter, which runs the code generator."""


@dataclass(frozen=True, slots=True)
class PackageManager:
    """How one package manager is called, and its names."""

    command: tuple[str, ...]
    as_root: bool
    names: Mapping[Need, str]


MANAGERS = (
    PackageManager(
        ("apt-get", "install", "-y"),
        True,
        {
            Need.COMPILER: "g++",
            Need.LINKER: "lld",
            Need.AR: "binutils",
            Need.FMT: "libfmt-dev",
            Need.CPUINFO: "libcpuinfo-dev",
            Need.OPENBLAS: "libopenblas-dev",
            Need.SLEEF: "libsleef-dev",
            Need.FLATBUFFERS: "libflatbuffers-dev",
            Need.FLATC: "flatbuffers-compiler",
            Need.PTHREADPOOL: "libpthreadpool-dev",
            Need.FP16: "libfp16-dev",
            Need.FXDIV: "libfxdiv-dev",
            Need.PSIMD: "libpsimd-dev",
        },
    ),
    PackageManager(
        ("dnf", "install", "-y"),
        True,
        {
            Need.COMPILER: "gcc-c++",
            Need.LINKER: "lld",
            Need.AR: "binutils",
            Need.FMT: "fmt-devel",
            Need.CPUINFO: "cpuinfo-devel",
            Need.OPENBLAS: "openblas-devel",
            Need.SLEEF: "sleef-devel",
            Need.FLATBUFFERS: "flatbuffers-devel",
            Need.FLATC: "flatbuffers-compiler",
            Need.PTHREADPOOL: "pthreadpool-devel",
            Need.FP16: "FP16-devel",
            Need.FXDIV: "FXdiv-devel",
            Need.PSIMD: "psimd-devel",
        },
    ),
    PackageManager(
        ("brew", "install"),
        False,
        {
            Need.COMPILER: "llvm",
            Need.LINKER: "lld",
            Need.AR: "llvm",
            Need.FMT: "fmt",
            Need.CPUINFO: "cpuinfo",
            Need.OPENBLAS: "openblas",
            Need.SLEEF: "sleef",
            Need.FLATBUFFERS: "flatbuffers",
            Need.FLATC: "flatbuffers",
        },
    ),
)


def install_line(needs: Iterable[Need]) -> str | None:
    """One line for a shell that installs `needs` on this machine; None if there are none.

    A comment in it gives the usual names of what the package manager does not have, or of all if there is none.
    """
    wanted = frozenset(needs)
    python, system = wanted & PYTHON_NEEDS, wanted - PYTHON_NEEDS
    manager = next((manager for manager in MANAGERS if shutil.which(manager.command[0])), None)
    commands = []
    if system and manager:
        sudo = ["sudo"] if manager.as_root and os.geteuid() != 0 else []
        known = sorted({manager.names[need] for need in system if need in manager.names})
        commands += [[*sudo, *manager.command, *known]] if known else []
    if python:
        commands.append([sys.executable, "-m", "pip", "install", *sorted(python)])
    line = " && ".join(shlex.join(command) for command in commands)
    nameless = sorted(need for need in system if not manager or need not in manager.names)
    if nameless:
        line += f"  # the development packages of {', '.join(nameless)}"
    return line.strip() or None
