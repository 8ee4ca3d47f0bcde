"""The compiler: where it is, what it is, where it looks for headers, and how it is called."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import MissingInstallation
from opsieve.runtimes.source.objects.job import CompileJob

_REMEDY = "install one (g++ or clang++), or set CXX to its name"
COMPILER_FOLDER = "/"
"""Where compilers run: one folder for all, since debug information and LTO keep it. Nothing is written there."""

_PROBE_SECONDS = 60
_QUOTE_LIST = '#include "..." search starts here:'
_ANGLE_LIST = "#include <...> search starts here:"
_LIST_END = "End of search list."


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler of g++'s or clang++'s kind; as a driver it compiles C and assembler too.

    `identity` is a hash of what it says of its version and target. `arguments` are the words after the name in `$CXX`.
    """

    path: Path
    identity: str
    arguments: tuple[str, ...] = ()

    @classmethod
    def find(cls, name: str | None = None) -> Compiler:
        """The compiler of this name or path (cross compilers by full name), else `$CXX`, g++, clang++ or c++.

        Raises MissingInstallation if there is none or it does not work.
        """
        chosen = name or os.environ.get("CXX")
        candidates = [shlex.split(chosen)] if chosen else [["g++"], ["clang++"], ["c++"]]
        for words in candidates:
            found = shutil.which(words[0]) if words else None
            if found:
                return cls._at(Path(found).absolute(), tuple(words[1:]))
        wanted = f"the C++ compiler {chosen} is not there" if chosen else "there is no C++ compiler"
        raise MissingInstallation(wanted, remedy=_REMEDY)

    @classmethod
    def _at(cls, path: Path, arguments: tuple[str, ...]) -> Compiler:
        told = [_output([str(path), *arguments, option]) for option in ("--version", "-dumpmachine")]
        # The first word is the program as it was called (g++, g++-12, x86_64-linux-gnu-g++): the same compiler still.
        version = re.sub(r"^\S+ (?=\()", "", told[0])
        identity = hashlib.sha256("\0".join((version, told[1], *arguments)).encode()).hexdigest()
        return cls(path, identity, arguments)

    @property
    def command(self) -> tuple[str, ...]:
        """The words that every call starts with."""
        return (str(self.path), *self.arguments)


@dataclass(frozen=True)
class SearchPath:
    """Where the compiler looks for headers, in its order; folders that are missing or named twice are left out by it.

    `quoted` is searched for `#include "x"` only, before `angled`. `machine` is what `-march=native` means, if given.
    """

    quoted: tuple[str, ...]
    angled: tuple[str, ...]
    machine: str


def search_path(compiler: Compiler, job: CompileJob) -> SearchPath:
    """Ask the compiler itself: `-isystem`, `--sysroot`, CPATH and its own folders all take part.

    Raises MissingInstallation when it cannot preprocess an empty file with these flags.
    """
    include = [word for folder in job.include_folders for word in ("-I", folder)]
    language = "c++" if job.language == "assembler" else job.language
    command = [*compiler.command, *job.language_flags, *include, "-x", language, "-E", "-v", os.devnull]
    lines = _output(command, errors=True).splitlines()
    native = any(flag.endswith("=native") for flag in job.flags)
    # The call of the compiler proper, in which "native" has become what this machine is.
    machine = next((line for line in lines if native and re.search(r"[/-]cc1", line)), "").replace('"', "")
    return SearchPath(
        tuple(_listed(lines, _QUOTE_LIST, _ANGLE_LIST)),
        tuple(_listed(lines, _ANGLE_LIST, _LIST_END)),
        " ".join(re.findall(r"(?:^| )(-m\S+|--param \S+|-target-(?:cpu|feature) \S+)", machine)),
    )


def _listed(lines: list[str], start: str, end: str) -> list[str]:
    if start not in lines or end not in lines:
        return []
    return [line.strip() for line in lines[lines.index(start) + 1 : lines.index(end)]]


def compile_command(compiler: Compiler, job: CompileJob, output: Path, depfile: Path) -> list[str]:
    """The call that compiles a job.

    Headers are listed by -MD, not -MMD: a library or libc that was upgraded changes objects and not the compiler's
    version. No absolute path enters the object, so that two checkouts of one tree may share it; the name seeds what g++
    would make unique at random.
    """
    # Of several maps that fit, the last one given counts: the innermost folder has to come last.
    mapped = sorted({*job.include_folders, os.path.dirname(job.source_path)}, key=len)  # noqa: PTH120
    return [
        *compiler.command,
        *job.language_flags,
        *(word for folder in job.include_folders for word in ("-I", folder)),
        *(f"-ffile-prefix-map={folder.rstrip('/')}/=" for folder in mapped),
        f"-ffile-prefix-map={job.source_path}={job.name}",
        f"-frandom-seed={job.name}",
        *("-MD", "-MF", str(depfile), "-MT", "object"),
        *("-x", job.language, "-c", job.source_path, "-o", str(output)),
    ]


def compiler_environment(temporary: Path) -> dict[str, str]:
    """The environment of every call: messages in English, a fixed date, temporary files where we clear them away."""
    unwanted = ("DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0", "TMPDIR": str(temporary)}


def _output(command: list[str], *, errors: bool = False) -> str:
    environment = {**os.environ, "LC_ALL": "C"}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            cwd=COMPILER_FOLDER,
            env=environment,
            timeout=_PROBE_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingInstallation(f"the compiler does not start: {error}", where=command[0], remedy=_REMEDY) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        wrong = next((line for line in said if "error" in line), said[-1] if said else f"status {done.returncode}")
        raise MissingInstallation(f"the compiler does not work: {wrong}", where=command[0], remedy=_REMEDY)
    return (done.stderr if errors else done.stdout).decode(errors="replace")
