"""QNNPACK, which PyTorch's tree brings: its files for a processor, and which other sources are told of it.

Facts from CMakeLists.txt of `aten/src/ATen/native/quantized/cpu/qnnpack` and cmake/Dependencies.cmake, alike in 1.13.1
and 2.6.0.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source.objects.compiler import Compiler
from opsieve.runtimes.source.objects.includes import find_includes
from opsieve.runtimes.source.tree import QNNPACK_LISTS_FILE

FOLDER = QNNPACK_LISTS_FILE.rpartition("/")[0]

_LOG = "deps/clog/src/clog.c"
_INCLUDE = ("include", "src", "deps/clog/include")

_SET = re.compile(r"\bset\s*\(\s*PYTORCH_QNNPACK_(\w+_(?:SRCS|UKERNELS))\s+([^()$]*)\)")
_FAMILIES = {"X86": "x86", "NEON": "arm", "AARCH32": "arm32", "AARCH64": "arm64"}
"""A word in the name of a list -> the processors that its files are for."""

_MACHINES = (
    (re.compile(r"^(i[3-6]86|x86_64)-"), frozenset({"x86"})),
    (re.compile(r"^(aarch64|arm64)\b"), frozenset({"arm", "arm64"})),
    (re.compile(r"^arm"), frozenset({"arm", "arm32"})),
)
_FLAGS = ("-DPYTORCH_QNNPACK_RUNTIME_QUANTIZATION=1",)
_KERNEL_FLAGS = {
    frozenset({"x86"}): ("-O2", "-msse2"),
    frozenset({"arm", "arm64"}): ("-O2",),
    frozenset({"arm", "arm32"}): ("-O2", "-marm", "-mfpu=neon"),
}
_MACROS = (b"USE_PYTORCH_QNNPACK", b"USE_PTHREADPOOL")
_HEADERS = frozenset({".h", ".hpp", ".inc", ".inl"})
_MAX_BYTES = 1 << 20
_SECONDS = 60


def families(compiler: Compiler) -> frozenset[str]:
    """What the compiler's target can run: some of x86, arm, arm32, arm64.

    Raises InvalidSourceTree for any other processor, for which QNNPACK has no code.
    """
    told = subprocess.run(
        [*compiler.command, "-dumpmachine"], capture_output=True, text=True, timeout=_SECONDS, check=False
    ).stdout.strip()
    for pattern, found in _MACHINES:
        if pattern.search(told):
            return found
    raise InvalidSourceTree(
        f"QNNPACK has no code for {told[:60] or 'an unknown processor'}",
        expected="x86 or ARM",
        remedy="build with --quantized-engine none",
    )


def qnnpack_sources(root: Path, wanted: frozenset[str]) -> dict[str, Path]:
    """The library's sources in the tree at `root` for processors of these families: name -> file.

    Raises InvalidSourceTree when the tree has none, or its list cannot be read or leads out of it.
    """
    lists = root / QNNPACK_LISTS_FILE
    try:
        with lists.open(encoding="utf-8", errors="replace") as stream:
            text = stream.read(_MAX_BYTES)
    except OSError as error:
        raise InvalidSourceTree(
            f"the list of QNNPACK's sources cannot be read: {error.strerror}",
            where=lists,
            remedy="take a complete tree, or build with --quantized-engine none",
        ) from error
    names = [path for name, paths in _SET.findall(text) if _is_for(name, wanted) for path in paths.split()]
    if not names:
        raise InvalidSourceTree("this lists no source of QNNPACK", where=lists, expected="set(PYTORCH_QNNPACK_..._SRCS")
    return {
        f"{FOLDER}/{name}": root / FOLDER / name for name in (*names, _LOG) if _is_source(root / FOLDER, name, lists)
    }


def is_qnnpack(name: str) -> bool:
    """Whether a source is part of the library."""
    return name.startswith(f"{FOLDER}/")


def qnnpack_flags(name: str, wanted: frozenset[str]) -> tuple[str, ...]:
    """What the library's source is compiled with beside the flags of all sources."""
    is_kernel = name.count("/") > f"{FOLDER}/src/".count("/") and name != f"{FOLDER}/{_LOG}"
    return (*_FLAGS, *(_KERNEL_FLAGS.get(wanted, ()) if is_kernel else ()))


def qnnpack_include(root: Path) -> tuple[Path, ...]:
    """The include folders that its sources and users need besides those of all."""
    return tuple(root / FOLDER / name for name in _INCLUDE)


def engine_sources(sources: Mapping[str, Path], headers: Iterable[tuple[str, Path]]) -> frozenset[str]:
    """The sources that mention the engine's macros, or see a header that does: these, and no others, are told them.

    So every file sees the same text of a header. `headers` are given as (path from the tree's root, file). As no search
    path is known, the end of a path tells what is included; one header too many does no harm.
    """
    texts = {name: file.read_bytes() for name, file in headers}
    includers: dict[str, list[str]] = {}
    for name, text in texts.items():
        for included in _included(text):
            includers.setdefault(included, []).append(name)
    frontier = [name for name, text in texts.items() if _mentions(text)]
    reached = set(frontier)
    while frontier:
        seen = {by for name in frontier for end in _ends(name) for by in includers.get(end, ())} - reached
        reached |= seen
        frontier = sorted(seen)
    known = {end for name in reached for end in _ends(name)}
    found = ((name, file.read_bytes()) for name, file in sources.items() if not is_qnnpack(name))
    return frozenset(name for name, text in found if _mentions(text) or not known.isdisjoint(_included(text)))


def header_files(root: Path, folders: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """The headers below folders of the tree, as (path from the root, file)."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in _HEADERS and path.is_file():
                yield path.relative_to(root).as_posix(), path


def _included(text: bytes) -> Iterator[str]:
    for _, name in find_includes(text).mentioned:
        yield str(PurePosixPath(name)).lstrip("./")


def _ends(name: str) -> Iterator[str]:
    """A path, and what is left of it without its first folders."""
    while True:
        yield name
        _, slash, name = name.partition("/")
        if not slash:
            return


def _mentions(text: bytes) -> bool:
    return any(macro in text for macro in _MACROS)


def _is_for(name: str, wanted: frozenset[str]) -> bool:
    return all(family in wanted for word, family in _FAMILIES.items() if word in name.split("_"))


def _is_source(folder: Path, name: str, lists: Path) -> bool:
    pure = PurePosixPath(name)
    if pure.is_absolute() or ".." in pure.parts or "\0" in name:
        raise InvalidSourceTree(
            f"a list of source files names {name!r}", where=lists, expected="a path inside the tree"
        )
    return (folder / name).is_file()
