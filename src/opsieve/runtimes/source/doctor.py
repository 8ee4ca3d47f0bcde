"""What a build from source needs of this machine, and what of it is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from opsieve.errors import MissingInstallation
from opsieve.runtimes.source.doctor_probes import (
    Header,
    archiver,
    compiler_version,
    find_header,
    flatc,
    linkers,
    python_package,
)
from opsieve.runtimes.source.flatbuffers import IN_TREE, LIBRARY, Remedy, find_library, remedy
from opsieve.runtimes.source.objects.compiler import Compiler
from opsieve.runtimes.source.packages import Need, install_line
from opsieve.runtimes.source.tree import SourceTree


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for."""

    name: str
    needed_for: str
    required: bool
    ok: bool
    found: str = ""
    """The version, or the path where there is none; empty if there is nothing."""

    path: str = ""
    note: str = ""
    """Why what was found does not do, or what else there is to know. One sentence."""

    install: Need | None = None
    """What to install when it is missing; None if installing would not help."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All checks, the required ones first."""

    checks: tuple[Check, ...]

    @property
    def missing(self) -> tuple[Check, ...]:
        """What is required and not there."""
        return tuple(check for check in self.checks if check.required and not check.ok)

    @property
    def install_required(self) -> str | None:
        """One line for a shell that installs what is required and missing."""
        return install_line(check.install for check in self.missing if check.install)

    @property
    def install_optional(self) -> str | None:
        """One line for a shell that installs what is optional and missing."""
        return install_line(c.install for c in self.checks if c.install and not (c.required or c.ok))

    def demand(self) -> None:
        """Raise MissingInstallation, naming all that is required and missing, unless nothing is."""
        if self.missing:
            raise MissingInstallation(
                f"a build from source lacks {', '.join(check.name for check in self.missing)}",
                expected="; ".join(check.note for check in self.missing if check.note) or None,
                remedy=self.install_required or "opsieve doctor",
            )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A header, the folder of a checked-out tree that may have it, and what it is for."""

    need: Need
    header: Header
    needed_for: str
    in_tree: str = ""
    required: bool = False


_ENGINE = "--quantized-engine qnnpack"
_FLATBUFFER_MODELS = "models saved as flatbuffers"

_HEADERS = (
    _Wanted(Need.FMT, Header("fmt/format.h", "FMT_VERSION"), "text formatting", "third_party/fmt/include", True),
    _Wanted(Need.CPUINFO, Header("cpuinfo.h"), "processor detection", "third_party/cpuinfo/include", True),
    _Wanted(Need.OPENBLAS, Header("cblas.h"), "--blas openblas"),
    _Wanted(
        Need.SLEEF,
        Header("sleef.h", "SLEEF_VERSION_MAJOR.SLEEF_VERSION_MINOR.SLEEF_VERSION_PATCHLEVEL"),
        "--cpu avx2, avx512, armv8.2",
        "third_party/sleef/include",
    ),
    _Wanted(Need.FLATBUFFERS, LIBRARY, _FLATBUFFER_MODELS, IN_TREE),
    _Wanted(Need.PTHREADPOOL, Header("pthreadpool.h"), "--threads native, qnnpack", "third_party/pthreadpool/include"),
    _Wanted(Need.FP16, Header("fp16.h"), _ENGINE, "third_party/FP16/include"),
    _Wanted(Need.FXDIV, Header("fxdiv.h"), _ENGINE, "third_party/FXdiv/include"),
    _Wanted(Need.PSIMD, Header("psimd.h"), _ENGINE, "third_party/psimd/include"),
)


def diagnose(tree: SourceTree | None = None) -> Diagnosis:
    """Look for everything that a build of `tree` needs; without a tree, of any. Takes about half a second."""
    compiler = _compiler()
    checks = [
        _check_compiler(compiler),
        _check_linker(),
        _check_archiver(),
        *_check_headers(compiler, tree),
        _check_flatc(compiler, tree),
        *_check_python(),
    ]
    return Diagnosis(tuple(sorted(checks, key=lambda check: not check.required)))


def _compiler() -> Compiler | MissingInstallation:
    try:
        return Compiler.find()
    except MissingInstallation as error:
        return error


def _check_compiler(compiler: Compiler | MissingInstallation) -> Check:
    check = ("C++ compiler", "compiling C++17", True)
    if isinstance(compiler, MissingInstallation):
        return Check(*check, ok=False, note=compiler.problem, install=Need.COMPILER)
    version = compiler_version(compiler)
    if version is None:
        note = f"{compiler.path} does not compile a small C++17 program"
        return Check(*check, ok=False, path=str(compiler.path), note=note, install=Need.COMPILER)
    return Check(*check, ok=True, found=f"{compiler.path.name} {version}", path=str(compiler.path))


def _check_linker() -> Check:
    check = ("linker", "pruning exactly: lld, GNU ld", True)
    found = linkers()
    names = ", ".join(map(str, found))
    for linker in found:
        if linker.prunes:
            exact = ", ".join(str(other) for other in found if other.prunes)
            return Check(*check, ok=True, found=exact, path=str(linker.path))
    note = f"{names} would keep everything: right answers, but a far larger file" if found else ""
    return Check(*check, ok=False, found=names, note=note, install=Need.LINKER)


def _check_archiver() -> Check:
    path = archiver()
    check = ("ar", "static libraries", True)
    return Check(*check, ok=path is not None, found=str(path or ""), path=str(path or ""), install=Need.AR)


def _check_headers(compiler: Compiler | MissingInstallation, tree: SourceTree | None) -> Iterator[Check]:
    for wanted in _HEADERS:
        folders = [tree.root / wanted.in_tree] if tree and wanted.in_tree else []
        found = find_header(wanted.header, compiler if isinstance(compiler, Compiler) else None, folders)
        path = str(found.path if found else "")
        yield Check(
            f"{wanted.need} headers",
            wanted.needed_for,
            wanted.required,
            ok=found is not None,
            found=(found.version if found else "") or path,
            path=path,
            install=None if found else wanted.need,
        )


def _check_flatc(compiler: Compiler | MissingInstallation, tree: SourceTree | None) -> Check:
    """The headers alone will not do where the tree's own header was made for those of another release."""
    tool = flatc()
    library = find_library(tree.root if tree else None, compiler if isinstance(compiler, Compiler) else None)
    needless = bool(tree and library and remedy(tree.root, library, tool) is Remedy.NONE)
    note = ""
    if tool and library and library.version and not needless and tool.version != library.version:
        note = f"flatc is {tool.version} and the headers of flatbuffers are {library.version}; they have to be the same"
    return Check(
        "flatc",
        _FLATBUFFER_MODELS,
        False,
        ok=needless or (tool is not None and not note),
        found=tool.version if tool else "not needed for this tree" if needless else "",
        path=str(tool.path if tool else ""),
        note=note,
        install=None if tool else Need.FLATC,
    )


def _check_python() -> Iterator[Check]:
    for need in (Need.PYYAML, Need.TYPING_EXTENSIONS):
        version = python_package(need)
        check = (need.value, "PyTorch's code generator", True)
        yield Check(*check, ok=version is not None, found=version or "", path=sys.executable, install=need)
