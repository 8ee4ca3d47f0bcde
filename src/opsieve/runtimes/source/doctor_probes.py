"""What this machine has of compilers, linkers, headers and Python packages: each asked itself, by running it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from opsieve.runtimes.source.objects.compiler import Compiler

SECONDS = 60

CPP_STANDARD = 17
"""The oldest C++ standard that we compile with."""

_PROGRAM = "#include <optional>\n#include <string_view>\nstd::optional<std::string_view> there;\n"

_MARK = "opsieve_version"

_LINKERS = ("ld.lld", "ld", "ld.bfd", "ld.gold", "ld.mold", "mold")


@dataclass(frozen=True, slots=True)
class Linker:
    """A linker that is installed."""

    kind: str
    version: tuple[int, int]
    path: Path

    @property
    def prunes(self) -> bool:
        """Does it drop sections that only a `__start_` symbol holds (`-z start-stop-gc`)?

        lld has the option since 13, GNU ld since 2.37; gold does not know it and mold ignores it: they keep everything.
        """
        oldest = {"lld": (13, 0), "GNU ld": (2, 37)}.get(self.kind)
        return oldest is not None and self.version >= oldest

    def __str__(self) -> str:
        return f"{self.kind} {self.version[0]}.{self.version[1]}"


@dataclass(frozen=True, slots=True)
class Tool:
    """A program that says its version."""

    path: Path
    version: str


@dataclass(frozen=True, slots=True)
class Header:
    """A header to look for."""

    name: str
    version: str = ""
    """Macros that the preprocessor turns into a version."""


@dataclass(frozen=True, slots=True)
class FoundHeader:
    """A header that the compiler finds."""

    path: Path
    version: str


def compiler_version(compiler: Compiler) -> str | None:
    """The version of a compiler that can compile a small program of C++17; None if it cannot."""
    compiled = _run([*compiler.command, f"-std=c++{CPP_STANDARD}", "-x", "c++", "-fsyntax-only", "-"], _PROGRAM)
    if compiled is None:
        return None
    return (_run([*compiler.command, "-dumpfullversion", "-dumpversion"]) or "?").strip()


def linkers() -> tuple[Linker, ...]:
    """The linkers in PATH, each kind once, the first of its name."""
    found: dict[str, Linker] = {}
    for name in _LINKERS:
        path = shutil.which(name)
        linker = parse_linker(_run([path, "--version"]) or "", Path(path)) if path else None
        if linker:
            found.setdefault(linker.kind, linker)
    return tuple(found.values())


def parse_linker(told: str, path: Path) -> Linker | None:
    """What `--version` says: every linker names the GNU ones that it is compatible with, so the first name counts."""
    first = told.partition("\n")[0]
    for kind, pattern in (
        ("mold", r"^mold (\d+)\.(\d+)"),
        ("lld", r"\bLLD (\d+)\.(\d+)"),
        ("gold", r"^GNU gold .*\) (\d+)\.(\d+)"),
        ("GNU ld", r"^GNU ld .*?(\d+)\.(\d+)[\w.-]*$"),
    ):
        found = re.search(pattern, first)
        if found:
            return Linker(kind, (int(found[1]), int(found[2])), path)
    return None


def archiver() -> Path | None:
    """`ar`, or LLVM's."""
    found = shutil.which("ar") or shutil.which("llvm-ar")
    return Path(found) if found else None


def flatc() -> Tool | None:
    """The compiler of flatbuffers' schemas in PATH."""
    path = shutil.which("flatc")
    told = re.search(r"flatc version (\d+(?:\.\d+)+)", _run([path, "--version"]) or "") if path else None
    return Tool(Path(path).absolute(), told[1]) if path and told else None


def find_header(header: Header, compiler: Compiler | None, folders: Sequence[Path] = ()) -> FoundHeader | None:
    """The header where the compiler finds it, `folders` first, and its version if its macros give one.

    Without a compiler the usual folders are looked into. A header that cannot be included is not found.
    """
    if compiler is None:
        return _in_usual_folders(header, folders)
    text = f"#include <{header.name}>\n{_MARK} {header.version}\n"
    include = [option for folder in folders for option in ("-I", str(folder))]
    told = _run([*compiler.command, *include, f"-std=c++{CPP_STANDARD}", "-x", "c++", "-E", "-"], text)
    place = re.search(rf'^# \d+ "([^"\n]*/{re.escape(header.name)})"', told or "", re.MULTILINE)
    return FoundHeader(Path(place[1]), _version((told or "").rpartition(_MARK)[2])) if place else None


def python_package(name: str) -> str | None:
    """The version of a package in the running interpreter."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _in_usual_folders(header: Header, folders: Sequence[Path]) -> FoundHeader | None:
    usual = [Path("/usr/include"), Path("/usr/local/include"), *Path("/usr/include").glob("*-linux-gnu*")]
    for folder in (*folders, *usual):
        if (folder / header.name).is_file():
            return FoundHeader(folder / header.name, "")
    return None


def _version(preprocessed: str) -> str:
    """What the preprocessor made of macros: `90100`, as fmt counts, is 9.1.0. It adds blanks and `# 2 "file"` lines."""
    text = re.sub(r"^#.*$|\s", "", preprocessed, flags=re.MULTILINE)
    if re.fullmatch(r"\d{5,6}", text):
        number = int(text)
        return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
    return text if re.fullmatch(r"\d+(\.\d+)+", text) else ""


def _run(command: Sequence[str], text: str = "") -> str | None:
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
