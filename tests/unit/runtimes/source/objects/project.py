"""A tiny C and C++ project in a temporary folder, and a compiler that counts its runs."""

from __future__ import annotations

import shutil
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opsieve.runtimes.source.objects import Compiled, CompileJob, Compiler, ObjectStore, compile_all

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def script(path: Path, body: str) -> Path:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@dataclass
class Project:
    """Sources and include folders below `root`; `compiles` counts the runs of the compiler."""

    root: Path
    flags: tuple[str, ...] = ("-O1",)
    include: tuple[str, ...] = ("first", "second")
    store_name: str = "store"
    counting: Compiler | None = field(default=None, repr=False)

    @property
    def log(self) -> Path:
        return self.root / "compiled.log"

    def compiler(self, then: str = 'exec g++ "$@"') -> Compiler:
        """g++, or whatever `then` says, called through a script that writes a line for each file it compiles."""
        body = f'case " $* " in *" -c "*) echo run >> {self.log} ;; *) exec g++ "$@" ;; esac\n{then}'
        return Compiler.find(str(script(self.root / "counting-g++", body)))

    def _usual(self) -> Compiler:
        if self.counting is None:
            self.counting = self.compiler()
        return self.counting

    @property
    def compiles(self) -> int:
        return self.log.read_text().count("run") if self.log.exists() else 0

    def write(self, name: str, text: str) -> Path:
        return write(self.root / name, text)

    def job(self, name: str = "src/main.cpp") -> CompileJob:
        return CompileJob(name, self.root / name, self.flags, tuple(self.root / folder for folder in self.include))

    def store(self) -> ObjectStore:
        return ObjectStore(self.root / self.store_name)

    def build(self, *names: str, compiler: Compiler | None = None, keep_going: bool = False) -> Compiled:
        """Compile the named sources in a run of their own."""
        jobs = [self.job(name) for name in names or ("src/main.cpp",)]
        with self.store() as store:
            return compile_all(jobs, store, compiler or self._usual(), parallel=2, keep_going=keep_going)

    def built(self, name: str = "src/main.cpp") -> bytes:
        """The bytes of one object."""
        return self.build(name).require()[name].read_bytes()

    def left_over(self) -> list[Path]:
        """What a finished run must not leave in the store."""
        work = self.root / self.store_name / "work"
        return list(work.rglob("*")) if work.exists() else []
