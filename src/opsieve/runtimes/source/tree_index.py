"""The index of a tree's symbols, kept in the workspace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opsieve.errors import InvalidFile
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.index import SymbolIndex
from opsieve.runtimes.source.workspace import Workspace

_HEADERS = ("aten/src/ATen", "c10", "torch/csrc", "caffe2/serialize", "caffe2/utils", "caffe2/core")
_SUFFIXES = (".h", ".hpp", ".inc", ".inl")


def tree_index(workspace: Workspace, progress: Progress = SILENT) -> SymbolIndex:
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
    """Of the tree, and the configured ones: they tell which `#if` holds."""
    root, configured = workspace.tree.root, workspace.folder / "config"
    places = [*((root, root / folder) for folder in _HEADERS), (configured, configured)]
    return [
        (path.relative_to(base).as_posix(), path)
        for base, folder in places
        for path in sorted(folder.rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file()
    ]
