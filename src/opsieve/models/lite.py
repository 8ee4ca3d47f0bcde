"""Lite-interpreter models (`.ptl`): a zip archive whose `bytecode.pkl` names every overload.

Layout, as torch/csrc/jit/serialization/export_bytecode.cpp writes it:

    (version, (method, (('instructions', ((opcode, x, n), ...)),
                        ('operators', ((name, overload[, argument count]), ...)),
                        ('constants', ...), ('types', (annotation, ...)), ...)[, schema]), ...)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from opsieve.errors import InvalidModel
from opsieve.models.archive import ModelArchive
from opsieve.models.collect import NeedsCollector
from opsieve.models.mobile import MobileFunction, add_function, check_version, pickled_custom_classes
from opsieve.models.needs import ModelNeeds, Reach
from opsieve.models.pickles import read_pickle
from opsieve.models.torchscript import CODE, needs_of, read_script

BYTECODE = "bytecode.pkl"
MAX_NAMED = 10
_CALLS = ("OP", "OPN")


def read_lite(archive: ModelArchive) -> ModelNeeds:
    """The operators of every function in the bytecode. Raises InvalidModel when it is not as described above."""
    where = f"{archive.path}: {BYTECODE}"
    bytecode = archive.read(BYTECODE)
    version, *functions = _sequence(read_pickle(bytecode, where), "a top level", where, at_least=1)
    check_version(version, where)
    needs = NeedsCollector(archive.path, file_version=archive.file_version())
    for function in functions:
        add_function(needs, _function(function, where), where, BYTECODE)
    needs.custom_classes.update(pickled_custom_classes(bytecode))  # as constants
    if "data.pkl" in archive:
        needs.custom_classes.update(pickled_custom_classes(archive.read("data.pkl")))
    result = needs.needs("lite", archive.fingerprint())
    return replace(result, notes=tuple(_code_notes(archive, result)))


def _code_notes(archive: ModelArchive, needs: ModelNeeds) -> Iterator[str]:
    """torch.jit.load also takes these files, but runs the TorchScript code that stands beside the bytecode.

    That code was not inlined and simplified, and it packs quantized weights with operators of its own.
    """
    if not any(name.startswith(CODE) for name in archive.names):
        return
    known = {root.name.base_name for root in needs.roots}
    code = needs_of(read_script(archive), None).roots
    further = [
        root.name.base_name for root in code if root.reach is Reach.DISPATCHER and root.name.base_name not in known
    ]
    if further:
        more = f" and {len(further) - MAX_NAMED} more" if len(further) > MAX_NAMED else ""
        yield (
            "These are the operators of the bytecode. torch.jit.load would run the code in the file instead, "
            f"which also calls {', '.join(further[:MAX_NAMED])}{more}."
        )


def _function(function: object, where: str) -> MobileFunction:
    name, code, *_ = _sequence(function, "a function", where, at_least=2)
    if not isinstance(name, str):
        raise _malformed("a function without a name", where)
    where = f"{where}: {name[:200]}"
    fields = _fields(code, where)
    return MobileFunction(
        name,
        [_operator(entry, where) for entry in _table(fields, "operators", where)],
        _calls(_table(fields, "instructions", where), where),
        [annotation for annotation in _table(fields, "types", where) if isinstance(annotation, str)],
    )


def _operator(entry: object, where: str) -> str:
    base, overload, *_ = _sequence(entry, "an operator", where, at_least=2)
    if not isinstance(base, str) or not isinstance(overload, str):
        raise _malformed("an operator without a name", where)
    return f"{base}.{overload}" if overload else base


def _calls(instructions: list[object], where: str) -> Iterator[tuple[int, int]]:
    for number, instruction in enumerate(instructions):
        opcode, index, *_ = _sequence(instruction, "an instruction", where, at_least=2)
        if opcode in _CALLS:
            if type(index) is not int:
                raise _malformed(f"instruction {number} without an operator", where)
            yield number, index


def _fields(code: object, where: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    for pair in _sequence(code, "a function body", where):
        key, value, *_ = _sequence(pair, "a field", where, at_least=2)
        if isinstance(key, str):
            fields[key] = value
    return fields


def _table(fields: dict[str, object], name: str, where: str) -> list[object]:
    if name not in fields:
        raise _malformed(f"code without {name}", where)
    return _sequence(fields[name], name, where)


def _sequence(value: object, what: str, where: str, at_least: int = 0) -> list[object]:
    if not isinstance(value, tuple | list) or len(value) < at_least:
        raise _malformed(f"{what} that is no list of {at_least} or more values", where)
    return list(value)


def _malformed(problem: str, where: str) -> InvalidModel:
    return InvalidModel(f"the bytecode has {problem}", where=where, expected="the layout of a lite-interpreter model")
