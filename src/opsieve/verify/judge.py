"""The judge: which functions of a library does a program really execute?

Used to check what was kept: executed functions must be a part of it. Never used to decide what to keep, because one
run says nothing about the next (another batch size, another processor).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import EM_X86_64, PT_LOAD, Bytes, ElfFile, Int64s
from opsieve.errors import InvalidLibrary, MissingInstallation, UnsupportedLibrary
from opsieve.installed import TorchInstall
from opsieve.verify.mirror import mirror_package

SOURCE = Path(__file__).with_name("judge.c")
TRAP = 0xCC
"""`int3`, the one instruction of x86-64 that is a byte long and stops a program."""

_PF_X = 1
_CANNOT = 97
"""How a judged process ends when the judge cannot work; known to judge.c."""

_COMPILERS = ("cc", "gcc", "clang")
_REMEDY = "apt-get install gcc libc6-dev, or name a compiler with the variable CC"


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What one program did."""

    executed: Int64s
    """Addresses, as in the library, of the functions that were executed: a sorted part of the given starts."""

    returncode: int
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Judge:
    """A copy of a library with a trap at each function, ready for any number of runs."""

    library: Path
    """The copy. Nothing but `run` must use it: outside of it the traps end a program."""

    starts: Int64s
    """Sorted, each once."""

    folder: Path

    def run(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> JudgedRun:
        """Run `command`, which must load the copy by itself, with `environment` added to the present one.

        Processes that it starts are judged as well. Raises UnsupportedLibrary where the system forbids to change
        code in memory.
        """
        (self.folder / "hits").write_bytes(bytes(len(self.starts)))
        variables = {**os.environ, **(environment or {})}
        variables["LD_PRELOAD"] = " ".join(filter(None, [str(self._preload), variables.get("LD_PRELOAD")]))
        variables |= {"OPSIEVE_JUDGE": str(self.folder), "OPSIEVE_JUDGE_LIBRARY": self.library.name}
        done = subprocess.run(command, env=variables, capture_output=True, check=False)
        if done.returncode == _CANNOT:
            raise UnsupportedLibrary(done.stderr.decode(errors="replace").strip()[-400:], where=self.library)
        hits = np.fromfile(self.folder / "hits", np.uint8)
        return JudgedRun(self.starts[hits != 0], done.returncode, done.stdout, done.stderr)

    @property
    def _preload(self) -> Path:
        return self.folder / "judge.so"


@contextmanager
def judge(library: Path, starts: Int64s) -> Iterator[Judge]:
    """Make a Judge for `library`, in a temporary folder, and remove it afterwards.

    `starts`: addresses (as in the library's symbol table) at which instructions begin; each must be that of a
    function, since whatever reads the byte there as data reads a trap. Raises InvalidLibrary for addresses outside
    of the code, UnsupportedLibrary for other processors than x86-64, MissingInstallation without a C compiler.
    """
    elf = ElfFile(library)
    if elf.machine != EM_X86_64:
        raise UnsupportedLibrary("functions can only be trapped on x86-64", where=library)
    starts = np.unique(np.asarray(starts, np.int64))
    offsets = _file_offsets(elf, starts)
    with tempfile.TemporaryDirectory(prefix="opsieve-judge-") as name:
        folder = Path(name)
        _compile(folder / "judge.so")
        (folder / "library").mkdir()
        copy = folder / "library" / library.name
        originals = _write_trapped(elf, offsets, copy)
        starts.astype("<u8").tofile(folder / "addresses")
        originals.tofile(folder / "bytes")
        yield Judge(copy, starts, folder)


@contextmanager
def judged_torch(install: TorchInstall, library: str, starts: Int64s) -> Iterator[tuple[Judge, dict[str, str]]]:
    """A Judge for a library of PyTorch, such as `libtorch_cpu.so`, and the environment for a Python to load it."""
    with judge(install.library(library), starts) as ours:
        site = ours.folder / "site"
        mirror_package(install.package, site, {f"lib/{library}": ours.library})
        path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
        # The mirror's folders for bytecode are those of the installed package.
        yield ours, {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def executed_functions(
    library: Path,
    starts: Int64s,
    command: Sequence[str | Path],
    environment: Mapping[str, str] | None = None,
    *,
    install: TorchInstall | None = None,
) -> JudgedRun:
    """Run `command` once and tell which of the functions of `library` that begin at `starts` it executed.

    The program finds the trapped copy through PYTHONPATH when `library` belongs to `install`, and else through
    LD_LIBRARY_PATH. See `judge` for what is raised, and for judging several commands.
    """
    if install is not None:
        with judged_torch(install, library.name, starts) as (ours, path):
            return ours.run(command, {**(environment or {}), **path})
    with judge(library, starts) as ours:
        theirs = (environment or {}).get("LD_LIBRARY_PATH", os.environ.get("LD_LIBRARY_PATH"))
        folders = os.pathsep.join(filter(None, [str(ours.library.parent), theirs]))
        return ours.run(command, {**(environment or {}), "LD_LIBRARY_PATH": folders})


def _file_offsets(elf: ElfFile, addresses: Int64s) -> Int64s:
    """Where in the file the bytes at `addresses` are: the executable segments say so."""
    offsets = np.full(len(addresses), -1, np.int64)
    for segment in elf.segments[(elf.segments["type"] == PT_LOAD) & (elf.segments["flags"] & _PF_X != 0)]:
        start, size = int(segment["vaddr"]), int(segment["filesz"])
        inside = (addresses >= start) & (addresses < start + size)
        offsets[inside] = addresses[inside] - start + int(segment["offset"])
    if len(outside := addresses[offsets < 0]):
        raise InvalidLibrary(
            f"{len(outside)} addresses, such as {int(outside[0]):#x}, are not in the library's code", where=elf.path
        )
    return offsets


def _write_trapped(elf: ElfFile, offsets: Int64s, copy: Path) -> Bytes:
    """Copy the library, put the traps in, and return what was there."""
    shutil.copyfile(elf.path, copy)
    copy.chmod(0o700)
    originals: Bytes = elf.bytes[offsets]
    trapped = np.memmap(copy, np.uint8, "r+")
    trapped[offsets] = TRAP
    trapped.flush()
    return originals


def _compile(output: Path) -> None:
    """Compile judge.c with the system's compiler; it is small enough to do so each time."""
    named = os.environ.get("CC", "").split()
    compiler = named or [found for name in _COMPILERS if (found := shutil.which(name))][:1]
    if not compiler:
        raise MissingInstallation("there is no C compiler", expected="one of " + ", ".join(_COMPILERS), remedy=_REMEDY)
    options = ["-O2", "-fPIC", "-shared", "-Wl,-z,initfirst", "-o", str(output), str(SOURCE)]
    try:
        done = subprocess.run([*compiler, *options], capture_output=True, text=True, check=False)
    except OSError as error:
        raise MissingInstallation(
            f"cannot run the C compiler: {error.strerror}", where=compiler[0], remedy=_REMEDY
        ) from error
    if done.returncode != 0:
        raise MissingInstallation(
            f"the C compiler fails: {done.stderr.strip()[-400:]}", where=compiler[0], remedy=_REMEDY
        )
