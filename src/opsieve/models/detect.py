"""Which format a model file has, told by its content and never by its name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from opsieve.errors import InvalidModel
from opsieve.models.archive import ModelArchive, open_regular
from opsieve.models.flatbuffer import IDENTIFIER
from opsieve.models.lite import BYTECODE
from opsieve.models.torchscript import CODE

OLD_GRAPH = "serialized_exported_program.json"
"""The one member with a graph in torch.export files of before PyTorch 2.7."""

HEADER_BYTES = 64
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_SAVE_SCRIPT = "torch.jit.script(model).save('model.pt')"
_SAVE_EXPORT = "torch.export.save(torch.export.export(model, inputs), 'model.pt2')"
_SAVE = f"save the model itself: {_SAVE_EXPORT}, or {_SAVE_SCRIPT}"
_EXPECTED = "TorchScript (.pt), a lite-interpreter model (.ptl, or its flatbuffer form) or torch.export (.pt2)"

_OTHERS = (
    (0, b"\x89HDF", "an HDF5 file (Keras weights)", _SAVE),
    (0, b"\x93NUMPY", "a NumPy array", _SAVE),
    (0, b"GGUF", "a GGUF file (llama.cpp)", _SAVE),
    (0, b"\x7fELF", "a shared library or program", "give the model, not the runtime"),
    (4, b"TFL3", "a TensorFlow Lite model", "this tool is about PyTorch's operators"),
    (4, b"ET12", "an ExecuTorch program", "give the .pt2 file it was made from"),
    (0, b"\x80", "a pickle, as torch.save wrote it before PyTorch 1.6: weights without the code", _SAVE),
    (0, b"\x1f\x8b", "compressed with gzip", "unpack it first"),
)


class Format(StrEnum):
    """The formats that can be read, as `ModelNeeds.format` names them."""

    TORCHSCRIPT = "torchscript"
    LITE = "lite"
    LITE_FLATBUFFER = "lite-flatbuffer"
    EXPORT = "export"


def container_format(path: Path) -> Format | None:
    """LITE_FLATBUFFER, or None for a zip archive, whose members decide. Raises InvalidModel for anything else."""
    with open_regular(path) as file:
        header = file.read(HEADER_BYTES)
    if header[:4] in _ZIP:
        return None
    if header[4:8] == IDENTIFIER:
        return Format.LITE_FLATBUFFER
    raise _refusal(path, *_recognise(header))


def archive_format(archive: ModelArchive) -> Format:
    """The format of a zip archive. Raises InvalidModel when it holds no model code, and says what it holds."""
    names = archive.names
    if graph_members(names):
        return Format.EXPORT
    if BYTECODE in archive:
        return Format.LITE
    if any(name.startswith(CODE) for name in names):
        if "model.json" in archive:
            raise _refusal(
                archive.path,
                "this is TorchScript as PyTorch 1.0 wrote it, which has another layout",
                "load it with torch.jit.load of a PyTorch before 2.0 and save it again",
            )
        return Format.TORCHSCRIPT
    raise _refusal(archive.path, *_recognise_archive(names))


def graph_members(names: Iterable[str]) -> list[str]:
    """The members that hold exported programs as JSON, in either layout."""
    return [name for name in names if name == OLD_GRAPH or re.fullmatch(r"models/[^/]+\.json", name)]


def _refusal(path: Path, problem: str, remedy: str) -> InvalidModel:
    return InvalidModel(problem, where=path, expected=_EXPECTED, remedy=remedy)


def _recognise(header: bytes) -> tuple[str, str]:
    if not header:
        return "the file is empty", "get the file again"
    for offset, magic, what, remedy in _OTHERS:
        if header.startswith(magic, offset):
            return f"this is {what}", remedy
    if header[8:9] == b"{" and int.from_bytes(header[:8], "little") < 1 << 32:
        return "this is a safetensors file: weights without the code that uses them", _SAVE
    if header[0] == 0x08 and header[2:3] in (b"\x12", b"\x3a", b"\x42"):  # ir_version, then a name or the graph
        return "this is an ONNX model, whose operators are ONNX's", _SAVE
    return "this is no model that we know", _SAVE


def _recognise_archive(names: tuple[str, ...]) -> tuple[str, str]:
    if any(name.startswith("data/aotinductor/") for name in names):
        return "this package holds compiled code only (AOTInductor), no graph", f"keep the exported one: {_SAVE_EXPORT}"
    if any(name.startswith(".data/ts_code/") or name == ".data/extern_modules" for name in names):
        return "this is a torch.package archive", _SAVE
    if "data.pkl" in names:
        return "this file of torch.save holds weights or a pickled module, not the code that uses them", _SAVE
    if any(name.endswith(".npy") for name in names):
        return "this is an archive of NumPy arrays", _SAVE
    return "this zip archive holds no model", _SAVE
