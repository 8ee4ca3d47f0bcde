"""What the two containers of lite-interpreter bytecode have in common: functions with a table of operators."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opsieve.errors import InvalidModel
from opsieve.models.collect import NeedsCollector
from opsieve.models.needs import Use

OLDEST_VERSION, NEWEST_VERSION = 3, 9
"""The bytecode versions that torch/csrc/jit/mobile/import.cpp accepts (kMinSupportedBytecodeVersion and on)."""

_CUSTOM_CLASS = re.compile(r"__torch__\.torch\.classes\.\w+(?:\.\w+)*")
_CUSTOM_CLASS_GLOBAL = re.compile(rb"c(__torch__\.torch\.classes[\w.]*)\n(\w+)\n")


@dataclass(frozen=True, slots=True)
class MobileFunction:
    """One function of a lite-interpreter model."""

    name: str
    operators: Sequence[str]
    """`namespace::name[.overload]`, as the file spells them."""

    calls: Iterable[tuple[int, int]]
    """For each instruction that calls an operator: its number, and the operator's index."""

    types: Iterable[str]
    """Type annotations that the instructions refer to."""


def add_function(needs: NeedsCollector, function: MobileFunction, where: str, place: str) -> None:
    """Note what `function` calls. An operator that no instruction calls counts too: loading looks it up."""
    if function.name in needs.methods:
        raise InvalidModel("the model has two functions of this name", where=f"{where}: {function.name[:200]}")
    needs.methods.add(function.name)
    unused = set(range(len(function.operators)))
    for instruction, index in function.calls:
        if not 0 <= index < len(function.operators):
            raise InvalidModel(
                f"instruction {instruction} calls operator {index} of {len(function.operators)}",
                where=f"{where}: {function.name}",
            )
        needs.add_written(function.operators[index], Use(function.name, f"{place}:{instruction}"))
        unused.discard(index)
    for index in unused:
        needs.add_written(function.operators[index], Use(function.name, place))
    for annotation in function.types:
        needs.custom_classes.update(custom_classes(annotation))


def check_version(version: object, where: str) -> None:
    """Raise InvalidModel unless `version` is a bytecode version whose layout we know."""
    if type(version) is not int or not OLDEST_VERSION <= version <= NEWEST_VERSION:
        raise InvalidModel(
            f"bytecode version {str(version)[:20]} is unknown",
            where=where,
            expected=f"{OLDEST_VERSION} to {NEWEST_VERSION}",
            remedy="save the model again with a supported PyTorch",
        )


def custom_classes(text: str) -> list[str]:
    """The C++ classes that a TorchScript type or a piece of TorchScript names."""
    return _CUSTOM_CLASS.findall(text)


def pickled_custom_classes(pickle: bytes) -> list[str]:
    """The C++ classes of the objects in a pickle."""
    return [f"{module.decode()}.{name.decode()}" for module, name in _CUSTOM_CLASS_GLOBAL.findall(pickle)]
