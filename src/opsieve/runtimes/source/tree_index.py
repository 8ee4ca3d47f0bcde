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
    root = workspace.tree.root
    return [
        (path.relative_to(root).as_posix(), path)
        for folder in _HEADERS
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in _SUFFIXES and path.is_file()
    ]
