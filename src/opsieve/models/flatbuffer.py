"""Lite-interpreter models in FlatBuffers form. Field numbers: mobile_bytecode.fbs of PyTorch, in the order there.

The file is mapped, and only the pages with code are touched: the weights stay on the disk.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator
from pathlib import Path

from opsieve.models.collect import NeedsCollector
from opsieve.models.mobile import MobileFunction, add_function, check_version, custom_classes
from opsieve.models.needs import ModelNeeds
from opsieve.models.tables import Buffer, Table

IDENTIFIER = b"PTMF"
"""At byte 4 of the file."""

SAMPLE_BYTES = 1024
"""How much the fingerprint reads at the start, the middle and the end of each weight."""

_MODULE_VERSION, _MODULE_IVALUES, _MODULE_STORAGES, _MODULE_TYPES, _MODULE_OPERATOR_VERSION = 0, 4, 6, 7, 10
_IVALUE_KIND, _IVALUE_VALUE = 0, 1
_KIND_FUNCTION = 16
_FUNCTION_NAME, _FUNCTION_INSTRUCTIONS, _FUNCTION_OPERATORS, _FUNCTION_TYPES = 0, 1, 2, 4
_OPERATOR_NAME, _OPERATOR_OVERLOAD = 0, 1
_TYPE_NAME = 0
_STORAGE_DATA = 0
_PIECE = 1 << 20

_INSTRUCTION_BYTES = 8  # op: int8, one byte of padding, n: uint16, x: int32
_INSTRUCTION_X = 4
_OPCODE_CALLS = (0, 1)  # OP and OPN, the first two of torch/csrc/jit/runtime/instruction.h

_SAMPLED = (
    "The fingerprint covers the whole code, but of each weight only the size and three samples of "
    f"{SAMPLE_BYTES} bytes: this format has no checksums, and weights are not read in full."
)


def read_flatbuffer(path: Path) -> ModelNeeds:
    """The operators of every function in the file. Raises InvalidModel when it is broken."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _read(path, Buffer(data, str(path)))


def bytecode_version(buffer: Buffer) -> int:
    """The version that the file says its functions have."""
    return buffer.root().number(_MODULE_VERSION, "<I")


def _read(path: Path, buffer: Buffer) -> ModelNeeds:
    module = buffer.root()
    check_version(module.number(_MODULE_VERSION, "<I"), str(path))
    needs = NeedsCollector(path, file_version=module.number(_MODULE_OPERATOR_VERSION, "<I"))
    for value in module.tables(_MODULE_IVALUES):
        function = value.table(_IVALUE_VALUE)
        if function is not None and value.number(_IVALUE_KIND, "<B") == _KIND_FUNCTION:
            add_function(needs, _function(function), str(path), "flatbuffer")
    for object_type in module.tables(_MODULE_TYPES):
        needs.custom_classes.update(custom_classes(object_type.string(_TYPE_NAME)))
    needs.notes.append(_SAMPLED)
    return needs.needs("lite-flatbuffer", _fingerprint(buffer, module))


def _function(function: Table) -> MobileFunction:
    return MobileFunction(
        function.string(_FUNCTION_NAME),
        [_operator(entry) for entry in function.tables(_FUNCTION_OPERATORS)],
        _calls(function),
        function.strings(_FUNCTION_TYPES),
    )


def _operator(entry: Table) -> str:
    base, overload = entry.string(_OPERATOR_NAME), entry.string(_OPERATOR_OVERLOAD)
    return f"{base}.{overload}" if overload else base


def _calls(function: Table) -> Iterator[tuple[int, int]]:
    positions = function.vector(_FUNCTION_INSTRUCTIONS, _INSTRUCTION_BYTES)
    for number, position in enumerate(positions):
        if function.buffer.number("<b", position) in _OPCODE_CALLS:
            yield number, function.buffer.number("<i", position + _INSTRUCTION_X)


def _fingerprint(buffer: Buffer, module: Table) -> str:
    """A hash over every byte outside of the weights, and over three samples of each weight."""
    digest = hashlib.sha256(str(len(buffer.data)).encode())
    storages = [storage.extent(_STORAGE_DATA, 1) for storage in module.tables(_MODULE_STORAGES)]
    end_of_last = 0
    for storage in sorted(storages, key=lambda extent: (extent.start, extent.stop)):
        _hash_all(digest, buffer, end_of_last, storage.start)
        for start in (storage.start, (storage.start + storage.stop) // 2, storage.stop - SAMPLE_BYTES):
            digest.update(buffer.data[max(start, storage.start) : min(start + SAMPLE_BYTES, storage.stop)])
        end_of_last = max(end_of_last, storage.stop)
    _hash_all(digest, buffer, end_of_last, len(buffer.data))
    return f"flatbuffer-sample:{digest.hexdigest()}"


def _hash_all(digest: hashlib._Hash, buffer: Buffer, start: int, stop: int) -> None:
    for position in range(start, stop, _PIECE):
        digest.update(buffer.data[position : min(position + _PIECE, stop)])
