"""Compiles the small libraries that the tests analyse, each once per session."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

from opsieve.code import decode_worker, references
from opsieve.code.elf import ElfFile
from opsieve.code.functions import FunctionTable
from opsieve.code.graph import CodeGraph, build_code_graph
from opsieve.code.references import References
from opsieve.graph.op_graph import OpGraph, build_op_graph
from opsieve.progress import SILENT, Progress

LINKERS = ("bfd", "gold", "lld")


def asm(text: str) -> str:
    """Assembly code as C++ text."""
    return f'asm(R"({text})");'


@dataclass
class Compiler:
    """Makes shared libraries in a folder; the same call twice gives the same file."""

    folder: Path
    _made: dict[object, Path] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def library(self, *sources: Path | str, flags: Sequence[str] = (), linker: str = "bfd") -> Path:
        """Compile and link files, or C++ text, with the compiler's default level of optimisation and `flags`."""
        key = (sources, tuple(flags), linker)
        if key not in self._made:
            if shutil.which(f"ld.{linker}") is None:
                pytest.skip(f"the linker ld.{linker} is not installed")
            self._made[key] = self._link(self.folder / f"{next(self._numbers)}", sources, flags, linker)
        return self._made[key]

    def _link(self, folder: Path, sources: Sequence[Path | str], flags: Sequence[str], linker: str) -> Path:
        folder.mkdir(parents=True)
        files = [source if isinstance(source, Path) else _written(folder, source) for source in sources]
        out = folder / "library.so"
        common = ["-std=c++20", "-fPIC", "-shared", "-Wl,--build-id=sha1", f"-fuse-ld={linker}"]
        subprocess.run(["g++", *common, *files, *flags, "-o", out], check=True)
        return out


def _written(folder: Path, source: str) -> Path:
    path = folder / f"{sum(1 for _ in folder.iterdir())}.cpp"
    path.write_text(source)
    return path


def decode_here(elf: ElfFile, functions: FunctionTable, progress: Progress = SILENT) -> References:
    """What read_references gives, without the processes that it starts: they take a second, small libraries none."""
    entries = np.append(functions.entries, functions.ends[-1:])
    with redirect_stdout(io.StringIO()):
        columns = decode_worker.run(elf.path, entries, 0, 1)
    return references._join([columns])


def analyse(elf: ElfFile) -> CodeGraph:
    """The code graph of a small library."""
    with patch("opsieve.code.graph.read_references", decode_here):
        return build_code_graph(elf)


FAKE_TORCH = sorted((Path(__file__).parent / "graph" / "sources").glob("*.cpp"))
"""A few operators behind names and shapes of code like those of libtorch_cpu.so."""


def fake_torch(compiler: Compiler, *flags: str, linker: str = "bfd") -> ElfFile:
    """The small library with operators, compiled as PyTorch is: the addresses of its kernels are computed."""
    hidden = ["-O2", "-fvisibility-inlines-hidden", "-fno-tree-slp-vectorize"]
    return ElfFile(compiler.library(*FAKE_TORCH, flags=[*hidden, *flags], linker=linker))


def op_graph_of(elf: ElfFile) -> OpGraph:
    """The operator graph of a small library."""
    with patch("opsieve.code.graph.read_references", decode_here):
        return build_op_graph(elf)


@dataclass(frozen=True)
class Names:
    """Finds the functions and objects of a code graph by name."""

    elf: ElfFile
    graph: CodeGraph

    def all(self) -> list[str]:
        """The name of each node, empty for one without a symbol."""
        offsets = [*self.graph.functions.names.tolist(), *self.graph.data.names.tolist()]
        return [self.elf.name(".strtab", offset).decode() if offset >= 0 else "" for offset in offsets]

    def node(self, name: str) -> int:
        """The node with this very name."""
        return self.all().index(name)

    def reachable(self, *names: str) -> set[str]:
        """The names of all nodes that can be reached from some, themselves among them."""
        everything = self.all()
        seen = self.graph.reachable(np.array([everything.index(name) for name in names]))
        return {name for name, flag in zip(everything, seen.tolist(), strict=True) if flag and name}
