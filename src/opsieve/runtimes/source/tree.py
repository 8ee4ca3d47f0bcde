"""A PyTorch source tree: is it one, which version, and which of its files a build for the CPU compiles."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import NamedTuple, Self

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source.build_lists import LISTS_FILE, read_build_lists

OLDEST = (1, 12)
"""The first version whose code generator is the package `torchgen` that we build on."""

VERSION_FILE = "version.txt"

ORIGIN_FILE = ".opsieve-version"
"""Written by `opsieve source get`: a release's `version.txt` may name another (1.13.1 says 1.13.0a0)."""

FUNCTIONS_FILE = "aten/src/ATen/native/native_functions.yaml"

QNNPACK_LISTS_FILE = "aten/src/ATen/native/quantized/cpu/qnnpack/CMakeLists.txt"

MAX_FILE_BYTES = 2**26
"""Of one source file. The largest of PyTorch 2.6.0 that a build reads has 2 MB."""

_NEEDED = (VERSION_FILE, FUNCTIONS_FILE, LISTS_FILE, "torchgen/gen.py", "c10/core/TensorImpl.h", "torch/csrc/jit")

_ATEN = "aten/src/ATen"

_VERSION = re.compile(r"\s*v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")


class _Files(NamedTuple):
    lists: tuple[str, ...] = ()
    """Names of lists in `build_variables.bzl`."""

    patterns: tuple[str, ...] = ()
    """Glob patterns from the root of the tree."""


class SourceGroup(Enum):
    """Files that PyTorch's build takes together.

    Taken from caffe2/CMakeLists.txt, the CMakeLists.txt of caffe2/{core,serialize,utils}, aten/src/ATen and c10, and
    cmake/Codegen.cmake (kernels) of 1.13.1 and 2.6.0. Generated files are in none of them.
    """

    JIT_CORE = _Files(lists=("jit_core_sources",))
    ATEN = _Files(lists=("aten_cpu_source_non_codegen_list", "aten_native_source_non_codegen_list"))

    KERNELS = _Files(
        lists=("aten_native_source_codegen_list",),
        patterns=(f"{_ATEN}/native/cpu/*.cpp", f"{_ATEN}/native/quantized/cpu/kernels/*.cpp"),
    )
    """Compiled once for each instruction set (CPU_CAPABILITY)."""

    LITE = _Files(lists=("libtorch_lite_cmake_sources",), patterns=("torch/csrc/utils/out_types.cpp",))
    """The lite interpreter: BUILD_LITE_INTERPRETER."""

    DELEGATES = _Files(
        patterns=tuple(f"torch/csrc/jit/backends/backend_{name}.cpp" for name in ("debug_info", "interface"))
    )
    """Custom classes that saved lite models may hold: INTERN_BUILD_MOBILE."""

    FULL = _Files(lists=("libtorch_cmake_sources",))
    """The full TorchScript interpreter, the profiler and the lazy backend."""

    AUTOGRAD = _Files(
        patterns=tuple(f"torch/csrc/autograd/{name}Manual.cpp" for name in ("Functions", "TraceType", "VariableType"))
    )
    """What is written by hand of the derivatives; includes generated headers."""

    SAVING = _Files(lists=("libtorch_extra_sources",))
    """Writing models, and exporting them to ONNX (which needs its headers): builds for phones have none of it."""

    ATEN_REST = _Files(
        patterns=(
            *(f"{_ATEN}/{folder}*.cpp" for folder in ("", "detail/", "cpu/", "core/**/", "quantized/", "native/")),
            *(
                f"{_ATEN}/native/{folder}/**/*.cpp"
                for folder in ("ao_sparse", "sparse", "nested", "quantized", "utils")
            ),
            *(f"{_ATEN}/native/{folder}/*.cpp" for folder in ("mkl", "mkldnn", "transformers", "xnnpack")),
        ),
    )
    """What the build with the full interpreter takes by pattern where the lite one has lists: about 30 files more."""

    FUNCTORCH = _Files(patterns=(f"{_ATEN}/functorch/*.cpp",))

    CAFFE2 = _Files(
        patterns=(
            "caffe2/core/common.cc",
            "caffe2/serialize/*.cc",
            "caffe2/utils/string_utils.cc",
            "caffe2/utils/threadpool/ThreadPool.cc",
        ),
    )
    """The reader of zip files, and a thread pool."""

    PTHREADPOOL = _Files(
        patterns=tuple(f"caffe2/utils/threadpool/{name}" for name in ("pthreadpool-cpp.cc", "thread_pool_guard.cpp"))
    )
    """For threads without OpenMP, and XNNPACK: needs the library pthreadpool."""

    C10 = _Files(patterns=("c10/**/*.cpp",))
    MINIZ = _Files(patterns=("third_party/miniz*/miniz.c",))


LITE_INTERPRETER: frozenset[SourceGroup] = frozenset(
    {
        SourceGroup.JIT_CORE,
        SourceGroup.ATEN,
        SourceGroup.KERNELS,
        SourceGroup.LITE,
        SourceGroup.DELEGATES,
        SourceGroup.CAFFE2,
        SourceGroup.C10,
        SourceGroup.MINIZ,
    }
)
"""What a runtime for `.ptl` models compiles, besides generated files."""

FULL_INTERPRETER: frozenset[SourceGroup] = LITE_INTERPRETER | {
    SourceGroup.FULL,
    SourceGroup.ATEN_REST,
    SourceGroup.AUTOGRAD,
}
"""What a runtime for `.pt` models compiles, besides generated files. It reads `.ptl` models as well."""

_SOURCE_SUFFIXES = frozenset({".cpp", ".cc", ".c"})

# Folders and names that no build for the CPU compiles.
_NOT_FOR_CPU = frozenset({"test", "tests", "benchmark", "benchmarks", "cuda", "cudnn", "hip", "miopen", "xpu", "mps"})

_TEST = re.compile(r"_test\.\w+$")


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A checked source tree."""

    root: Path
    """Absolute."""

    version: str
    """Three numbers, such as `2.6.0`, also where the tree says `2.6.0a0+git1eba9b3`."""

    @classmethod
    def open(cls, path: Path) -> Self:
        """Check that `path` is a PyTorch source tree of version 1.12 or newer, and read its version.

        Raises InvalidSourceTree for a folder that is no such tree or may not be read, for a tree in which files are
        missing (it names one), and for a tree whose version is unreadable or too old.
        """
        root = path.expanduser().absolute()
        try:
            missing = [name for name in _NEEDED if not (root / name).exists()]
        except OSError as error:
            raise InvalidSourceTree(f"the source tree cannot be read: {error.strerror}", where=path) from error
        if len(missing) > len(_NEEDED) // 2:
            raise InvalidSourceTree(
                "this is no PyTorch source tree" if root.is_dir() else "there is no such folder",
                where=path,
                expected=f"a folder with {VERSION_FILE}, {LISTS_FILE} and {FUNCTIONS_FILE}",
                remedy="opsieve source get 2.6.0 --to DIR, or a clone of PyTorch with its submodules",
            )
        version = _version(root)
        if missing:
            raise InvalidSourceTree(
                f"the PyTorch source tree is not complete: {missing[0]} is missing",
                where=path,
                remedy="get the tree again: opsieve source get, or git restore in a clone",
            )
        return cls(root, version)

    def sources(self, groups: Iterable[SourceGroup]) -> tuple[str, ...]:
        """The C and C++ files of `groups` that exist: paths with `/` from the root, sorted, each once.

        Raises InvalidSourceTree when the tree's lists cannot be read as data, or lead out of the tree.
        """
        wanted = frozenset(groups)
        lists = read_build_lists(self.root / LISTS_FILE)
        named = {path for group in wanted for name in group.value.lists for path in lists.get(name)}
        found = {path for group in wanted for pattern in group.value.patterns for path in self._glob(pattern)}
        return tuple(sorted({path for path in named if self._is_source(path)} | found))

    def fingerprint(self) -> str:
        """32 hexadecimal digits for what a build reads: the version, and contents and names of sources and headers.

        By content, not by times: two unpackings of one release, on two machines, are the same tree, so that compiled
        archives can be handed on. About 4,100 files and 40 MB; 0.2 s when the file system has them in memory.
        Raises InvalidSourceTree if a file cannot be read, or has more than MAX_FILE_BYTES.
        """
        digest = hashlib.blake2b(self.version.encode(), digest_size=16)
        try:
            for path in sorted(self.read_by_builds()):
                content = hashlib.blake2b(self._contents(path), digest_size=16).digest()
                digest.update(path.encode(errors="surrogateescape") + b"\0" + content)
        except OSError as error:
            raise InvalidSourceTree(f"a file cannot be read: {error.strerror}", where=error.filename) from error
        return digest.hexdigest()

    def _contents(self, path: str) -> bytes:
        file = self.root / path
        if file.stat().st_size > MAX_FILE_BYTES:
            raise InvalidSourceTree(
                "a source file is too large", where=file, expected=f"at most {MAX_FILE_BYTES} bytes"
            )
        return file.read_bytes()

    def _glob(self, pattern: str) -> Iterator[str]:
        for file in self.root.glob(pattern):
            path = file.relative_to(self.root).as_posix()
            if not _NOT_FOR_CPU.intersection(PurePosixPath(path).parts) and not _TEST.search(path):
                yield path

    def _is_source(self, path: str) -> bool:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or "\0" in path:
            raise InvalidSourceTree(
                f"a list of source files names {path!r}",
                where=self.root / LISTS_FILE,
                expected="a path inside the tree",
            )
        return pure.suffix in _SOURCE_SUFFIXES and (self.root / path).is_file()

    def read_by_builds(self) -> Iterator[str]:
        """The files that a build reads, as paths from the root, in no order."""
        yield LISTS_FILE
        if (self.root / QNNPACK_LISTS_FILE).is_file():
            yield QNNPACK_LISTS_FILE
        yield from (file.relative_to(self.root).as_posix() for file in (self.root / "torch").glob("*.h"))
        miniz = (folder.name for folder in (self.root / "third_party").glob("miniz*"))
        for folder in (*_FOLDERS_OF_BUILDS, *(f"third_party/{name}" for name in miniz)):
            for place, _, names in os.walk(self.root / folder):
                for name in names:
                    file = Path(place, name)
                    if file.suffix in _SUFFIXES_OF_BUILDS and file.is_file():
                        yield file.relative_to(self.root).as_posix()


_FOLDERS_OF_BUILDS = (
    "aten/src",
    "c10",
    "caffe2/core",
    "caffe2/serialize",
    "caffe2/utils",
    "tools/autograd",
    "tools/setup_helpers",
    "torch/csrc",
    "torch/headeronly",  # since 2.9
    "torchgen",
)

_SUFFIXES_OF_BUILDS = frozenset({".h", ".hpp", ".inc", ".inl", ".in", ".c", ".cc", ".cpp", ".S", ".py", ".yaml"})


def parse_version(text: str) -> tuple[int, int, int] | None:
    """The three numbers at the start of a version such as `2.6.0a0+git1eba9b3`; None when there are none."""
    found = _VERSION.match(text)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def _version(root: Path) -> str:
    stated = _first_line(root / VERSION_FILE)
    version = parse_version(stated)
    if version is None:
        raise InvalidSourceTree(
            f"the version of the tree cannot be read: {stated[:40]!r}"
            if stated
            else "the tree does not say its version",
            where=root / VERSION_FILE,
            expected="a line such as 2.6.0a0",
        )
    origin = parse_version(_first_line(root / ORIGIN_FILE))
    if origin and origin[:2] == version[:2]:
        version = origin
    text = ".".join(map(str, version))
    if version[:2] < OLDEST:
        raise InvalidSourceTree(
            f"PyTorch {text} is too old to build from", where=root, expected="1.12 or newer", remedy="take a newer tree"
        )
    return text


def _first_line(file: Path) -> str:
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.readline(200).strip()
    except OSError:
        return ""
