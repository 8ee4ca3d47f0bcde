"""The headers that an application needs: exactly those that the compiler reads for a small program.

A header may be asked for by several names (`<torch/types.h>` and `<torch/csrc/api/include/torch/types.h>`, `"Sugar.h"`
beside it). It is copied once, under the first name that is found; its other names get a file of one line that includes
the copy, so that `#pragma once` holds.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import BuildFailed
from opsieve.runtimes.source.objects import CompileJob, Compiler
from opsieve.runtimes.source.objects.compiler import compiler_environment
from opsieve.runtimes.source.objects.includes import Style, find_includes, read_depfile
from opsieve.runtimes.source.options import Interpreter

_COMMON = (
    "opsieve/explain.h",
    "opsieve/tensor.h",
    "ATen/ATen.h",
    "ATen/Parallel.h",
    "c10/core/InferenceMode.h",
    "torch/custom_class.h",
    "torch/library.h",
)
PROBES: Mapping[Interpreter, tuple[str, ...]] = {
    Interpreter.LITE: ("torch/csrc/jit/mobile/import.h", "torch/csrc/jit/mobile/module.h", *_COMMON),
    Interpreter.FULL: ("torch/script.h", *_COMMON),
}
"""What an application may include."""

DEFINITION = re.compile(r"-D([A-Za-z_]\w*)(=.*)?", re.DOTALL)
_WORD = re.compile(rb"[A-Za-z_]\w*")
_SECONDS = 300


@dataclass(frozen=True)
class HeaderSet:
    """Headers by the name that they are included by."""

    files: Mapping[str, Path]
    others: Mapping[str, str]
    """A further name -> the name of the copy."""

    macros: tuple[str, ...]
    """Which of the macros that the flags define are mentioned in what was read, headers of the system included."""


def find_headers(compiler: Compiler, compile: CompileJob, asked: Sequence[str]) -> HeaderSet:
    """Everything below the include folders that including `asked` reads. Headers of the system are not among it.

    Raises BuildFailed if the compiler refuses.
    """
    folders = [_plain(folder) for folder in compile.include_folders]
    with tempfile.TemporaryDirectory(prefix="opsieve-headers-") as temporary:
        probe = Path(temporary) / "probe.cpp"
        probe.write_text("".join(f"#include <{name}>\n" for name in asked), encoding="utf-8")
        read = _read_files(compiler, compile, probe)
    own = {path for path in read if any(path.is_relative_to(folder) for folder in folders)}
    files, others = _name_all(own, folders, asked)
    return HeaderSet(files, others, _mentioned(read, compile.flags))


def _mentioned(files: Iterable[Path], flags: Iterable[str]) -> tuple[str, ...]:
    defined = {match[1].encode() for flag in flags if (match := DEFINITION.fullmatch(flag))}
    found: set[bytes] = set()
    for path in files:
        found |= defined.intersection(_WORD.findall(path.read_bytes()))
    return tuple(sorted(name.decode() for name in found))


def copy_headers(headers: HeaderSet, folder: Path) -> None:
    """Write them below `folder`, which is then the one include folder that is needed."""
    for name, path in headers.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    for name, copy in headers.others.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"#include <{copy}>\n", encoding="utf-8")


def _read_files(compiler: Compiler, compile: CompileJob, probe: Path) -> set[Path]:
    depfile = probe.with_suffix(".d")
    include = [word for folder in compile.include_folders for word in ("-I", folder)]
    command = [*compiler.command, *compile.flags, *include, "-M", "-MF", str(depfile), "-MT", "probe", str(probe)]
    done = subprocess.run(
        command, capture_output=True, env=compiler_environment(probe.parent), timeout=_SECONDS, check=False
    )
    if done.returncode or not depfile.is_file():
        said = done.stderr.decode(errors="replace").splitlines()
        wrong = next((line for line in said if "error" in line), said[0] if said else "no message")
        raise BuildFailed(f"the headers cannot be read: {wrong}", where=compiler.path, remedy="opsieve doctor")
    return {_plain(file) for file in read_depfile(depfile)[1:]}


def _name_all(
    own: set[Path], folders: Sequence[Path], asked: Sequence[str]
) -> tuple[Mapping[str, Path], Mapping[str, str]]:
    """Follow the includes from `asked`, within `own`, and note every name."""
    names = _Names(own, folders)
    for name in asked:
        names.add(name, names.searched(name))
    while names.queue:
        name, path = names.queue.popleft()
        for style, included in find_includes(path.read_bytes()).mentioned:
            beside = os.path.normpath(f"{Path(name).parent}/{included}")
            found = names.beside(path, included) if style is Style.QUOTED else None
            if found is not None and not beside.startswith(".."):
                names.add(beside, found)
            else:
                names.add(os.path.normpath(included), names.searched(included))
    for path in sorted(own - names.first.keys()):  # the name came out of a macro
        names.add(next(_relative(path, folders)), path)
    return names.files, names.others


class _Names:
    """Which header has which names."""

    def __init__(self, own: set[Path], folders: Sequence[Path]) -> None:
        self.own = own
        # g++ takes headers of one length, time and text for one file under `#pragma once`, and lists only the first.
        self.twins: dict[Path, bool] = {}
        self.texts = {hash(path.read_bytes()) for path in own}
        self.folders = folders
        self.first: dict[Path, str] = {}
        self.files: dict[str, Path] = {}
        self.others: dict[str, str] = {}
        self.queue: deque[tuple[str, Path]] = deque()

    def add(self, name: str, path: Path | None) -> None:
        """Note that `path` is included as `name`. Raises BuildFailed when that is another header's name."""
        if path is None:
            return
        taken = self.files.get(name) or self.files.get(self.others.get(name, ""))
        if taken == path:
            return
        if taken is not None:
            raise BuildFailed(f"two headers are included by one name: {name}", where=path, expected=f"only {taken}")
        if path in self.first:
            self.others[name] = self.first[path]
        else:
            self.first[path] = name
            self.files[name] = path
            self.queue.append((name, path))

    def searched(self, name: str) -> Path | None:
        """The header that the include folders give for a name, if it is one of ours."""
        for folder in self.folders:
            path = folder / name
            if path.is_file():
                return self._ours(path)
        return None

    def beside(self, includer: Path, name: str) -> Path | None:
        """The header of this name in the folder of the one that includes it."""
        path = includer.parent / name
        return self._ours(path) if path.is_file() else None

    def _ours(self, path: Path) -> Path | None:
        plain = _plain(path)
        return plain if plain in self.own or self._is_twin(plain) else None

    def _is_twin(self, path: Path) -> bool:
        if path not in self.twins:
            below = any(path.is_relative_to(folder) for folder in self.folders)
            self.twins[path] = below and hash(path.read_bytes()) in self.texts
        return self.twins[path]


def _plain(path: str | Path) -> Path:
    """Absolute and without `..`, links not followed: a tree may be made of links into another place."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def _relative(path: Path, folders: Sequence[Path]) -> Iterator[str]:
    """Its names below the include folders, the shortest first."""
    below = [path.relative_to(folder).as_posix() for folder in folders if path.is_relative_to(folder)]
    return iter(sorted(below, key=lambda name: (len(name), name)))
