"""Saving an operator graph as a folder of arrays, and reading it back."""

from __future__ import annotations

import io
import zlib
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import msgspec
import numpy as np

from opsieve.code.graph import CodeGraph
from opsieve.graph.invocations import Invocations
from opsieve.graph.landmarks import Landmarks
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.registrations import Registration

Value = TypeVar("Value")
_DESCRIPTION = "description.json"
_CHECKSUMS = "checksums.json"
"""CRC-32 of every other file: a disk that fills up or a machine that stops can leave files of the right length."""


@dataclass(frozen=True, slots=True)
class _Description:
    """Everything that is not an array."""

    scalars: dict[str, str | int]
    operators: tuple[str, ...]
    all_registrations: tuple[Registration, ...]
    initialisers: tuple[int, ...]
    invocations: Invocations
    landmarks: Landmarks


def save_graph(graph: OpGraph, folder: Path) -> None:
    """Write the graph into an empty folder: one `.npy` file per array and a description in JSON."""
    scalars: dict[str, str | int] = {}
    for name, value in _leaves(graph.code, ""):
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", _narrow(value))
        else:
            scalars[name] = value
    description = _Description(
        scalars,
        graph.operators,
        graph.all_registrations,
        graph.initialisers,
        graph.invocations,
        graph.landmarks,
    )
    (folder / _DESCRIPTION).write_bytes(msgspec.json.encode(description))
    checksums = {path.name: zlib.crc32(path.read_bytes()) for path in sorted(folder.iterdir())}
    (folder / _CHECKSUMS).write_bytes(msgspec.json.encode(checksums))


def load_graph(folder: Path) -> OpGraph:
    """Read a graph that `save_graph` wrote. Raises OSError or ValueError when the folder is incomplete or damaged."""
    saved = _Saved.open(folder)
    found = saved.decode(_DESCRIPTION, _Description)
    code = _rebuild(CodeGraph, "", saved, found.scalars)
    return OpGraph(
        code, found.operators, found.all_registrations, found.initialisers, found.invocations, found.landmarks
    )


@dataclass(frozen=True, slots=True)
class _Saved:
    """Reads the files of a saved graph, each checked. Raises OSError or ValueError."""

    folder: Path
    checksums: dict[str, int]

    @classmethod
    def open(cls, folder: Path) -> _Saved:
        return cls(folder, _decode((folder / _CHECKSUMS).read_bytes(), dict[str, int]))

    def decode(self, name: str, kind: type[Value]) -> Value:
        return _decode(self.read(name), kind)

    def array(self, name: str) -> np.ndarray:
        array: np.ndarray = np.load(io.BytesIO(self.read(f"{name}.npy")))
        return array

    def read(self, name: str) -> bytes:
        raw = (self.folder / name).read_bytes()
        if zlib.crc32(raw) != self.checksums.get(name):
            raise ValueError(f"{self.folder / name} is damaged")
        return raw


def _decode(raw: bytes, kind: type[Value]) -> Value:
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no {kind.__name__}: {error}") from error


def _leaves(value: Any, prefix: str) -> list[tuple[str, Any]]:  # noqa: ANN401 (any dataclass)
    found: list[tuple[str, Any]] = []
    for field in fields(value):
        item = getattr(value, field.name)
        name = f"{prefix}{field.name}"
        found.extend(_leaves(item, f"{name}.") if is_dataclass(item) else [(name, item)])
    return found


def _rebuild(kind: type[Value], prefix: str, saved: _Saved, scalars: dict[str, str | int]) -> Value:
    arguments: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        path = f"{prefix}{name}"
        if is_dataclass(hint) and isinstance(hint, type):
            arguments[name] = _rebuild(hint, f"{path}.", saved, scalars)
        elif path in scalars:
            arguments[name] = scalars[path]
        else:
            arguments[name] = _widen(saved.array(path))
    return kind(**arguments)


def _narrow(array: np.ndarray) -> np.ndarray:
    """Addresses of a library fit into 32 bits: half the size on disk."""
    if array.dtype == np.int64 and len(array) and array.min() >= 0 and array.max() < 1 << 32:
        return array.astype(np.uint32)
    return array


def _widen(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int64) if array.dtype == np.uint32 else array
