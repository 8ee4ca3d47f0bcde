"""The main job from source: from models and a source tree to a linked runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from opsieve.errors import InvalidFile
from opsieve.models.needs import ModelNeeds
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.index import NOTHING_LEARNED, Learned, SymbolIndex
from opsieve.runtimes.source.libraries import libraries
from opsieve.runtimes.source.link.linker import Linker
from opsieve.runtimes.source.objects import Compiler, ObjectStore
from opsieve.runtimes.source.options import BuildOptions
from opsieve.runtimes.source.seeds import seed_sources
from opsieve.runtimes.source.selective_link import Linked, SelectiveLink
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.wanted import Wanted, wanted
from opsieve.runtimes.source.workspace import Workspace, open_workspace
from opsieve.select.choose import ExtraOperator

RUNNER = "opsieve/run.cpp"
"""The program that is linked: it loads a model and runs it."""

_HEADERS = ("aten/src/ATen", "c10", "torch/csrc", "caffe2/serialize", "caffe2/utils", "caffe2/core")
_SUFFIXES = (".h", ".hpp", ".inc", ".inl")


@dataclass(frozen=True)
class SourceRequest:
    """What a build from source is asked for."""

    tree: SourceTree
    models: tuple[ModelNeeds, ...]
    extra: tuple[ExtraOperator, ...] = ()
    options: BuildOptions = BuildOptions()
    folding: str = "all"
    """Of equal functions, if the linker can: "all", "safe" or "none"."""

    parallel: int | None = None
    """Compilers at once; None for one per processor."""


@dataclass(frozen=True)
class SourceBuild:
    """A linked runtime, and what it was made from."""

    request: SourceRequest
    workspace: Workspace
    compiler: Compiler
    linker: Linker
    wanted: Wanted
    linked: Linked


def build_from_source(
    request: SourceRequest, compiler: Compiler, linker: Linker, store: ObjectStore, output: Path, progress: Progress = SILENT
) -> SourceBuild:
    """Link the runner for the models to `output`, compiling what is not compiled yet.

    Raises what opening the workspace, compiling and linking raise; everything that was compiled is kept all the same.
    """
    workspace = open_workspace(request.tree, request.options, compiler, progress)
    roots = wanted(request.models, request.extra, workspace.sites)
    work = SelectiveLink(
        workspace,
        compiler,
        linker,
        store,
        _index(workspace, progress),
        _learned(workspace),
        libraries(request.tree, request.options),
        linker.folding(request.folding),
        progress,
        request.parallel,
    )
    seeds = dict.fromkeys((*seed_sources(workspace.sources), RUNNER, *roots.sources))
    try:
        linked = work.run(seeds, roots.symbols, output)
    finally:
        _remember(workspace, work.learned)
    return SourceBuild(request, workspace, compiler, linker, roots, linked)


def _index(workspace: Workspace, progress: Progress) -> SymbolIndex:
    """The tree's index, from the workspace or made now."""
    path = workspace.folder / "index.msgpack"
    try:
        return SymbolIndex.load(path)
    except InvalidFile:
        pass  # not there yet, or of another version
    with progress.stage("indexing the source tree"):
        index = SymbolIndex.build([*workspace.sources.items(), *_headers(workspace)], workspace.options.definitions)
    index.save(path)
    return index


def _headers(workspace: Workspace) -> Sequence[tuple[str, Path]]:
    root = workspace.tree.root
    return [
        (path.relative_to(root).as_posix(), path)
        for folder in _HEADERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file()
    ]


def _learned(workspace: Workspace) -> Learned:
    try:
        return Learned.load(workspace.folder / "learned.msgpack")
    except InvalidFile:
        return NOTHING_LEARNED


def _remember(workspace: Workspace, learned: Learned) -> None:
    """Add to what other builds learned in the meantime."""
    with FileLock(workspace.folder / "learned.lock"):
        learned.merged(_learned(workspace)).save(workspace.folder / "learned.msgpack")
