"""Operators that only the TorchScript interpreter has: their code, so that what it dispatches counts as needed.

`aten::__interpolate` and its like never reach the dispatcher themselves, but their implementation calls operators that
do. They are registered in two ways: in constant tables of `OperatorGeneratorArgs` (a schema text and, 16 bytes on, the
function: torch/csrc/jit/runtime/register_ops_utils.h), and by code in static initialisers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opsieve.graph.registrations import STATIC_INITIALISERS, Registration
from opsieve.graph.symbols import INTERPRETER, operator_text
from opsieve.graph.walk import CodeWalker, Kind, Reference

_FUNCTION_OFFSET = 16
"""Bytes from the schema's pointer to the operation's in a table entry."""


def read_interpreter_operators(walker: CodeWalker, dispatched: set[str]) -> list[Registration]:
    """Every operator outside the dispatcher whose implementation is found, one registration each."""
    found: dict[str, set[int]] = {}
    for operator, functions in (*_in_tables(walker), *_in_initialisers(walker)):
        if operator not in dispatched and functions:
            found.setdefault(operator, set()).update(functions)
    return [
        Registration(operator, INTERPRETER, tuple(sorted(functions)), False)
        for operator, functions in sorted(found.items())
    ]


def _in_tables(walker: CodeWalker) -> Iterator[tuple[str, list[int]]]:
    links = walker.graph.links
    constants = walker.elf.section(".rodata")
    texts = np.flatnonzero((links.targets >= constants.address) & (links.targets < constants.end))
    for index in texts.tolist():
        operator = _schema_operator(walker.text_at(int(links.targets[index])))
        if operator is None:
            continue
        slot = int(links.slots[index]) + _FUNCTION_OFFSET
        position = int(np.searchsorted(links.slots, slot))
        if position < len(links.slots) and links.slots[position] == slot:
            function = walker.function_starting_at(int(links.targets[position]))
            if function >= 0:
                yield operator, [function]


def _in_initialisers(walker: CodeWalker) -> Iterator[tuple[str, list[int]]]:
    for function, name in enumerate(walker.names):
        if name.startswith(STATIC_INITIALISERS):
            yield from _schemas_with_functions(list(walker.references(function)))


def _schemas_with_functions(references: list[Reference]) -> Iterator[tuple[str, list[int]]]:
    """Compilers reorder loads a little, so a function counts for the schema before it and for the one after it."""
    previous: tuple[str, list[int]] | None = None
    functions: list[int] = []
    for reference in references:
        if reference.kind is Kind.FUNCTION:
            functions.append(reference.function)
        operator = _schema_operator(reference.text) if reference.kind is Kind.STRING else None
        if operator is not None:
            if previous is not None:
                yield previous[0], previous[1] + functions
            previous, functions = (operator, functions), []
    if previous is not None:
        yield previous[0], previous[1] + functions


def _schema_operator(text: str | None) -> str | None:
    """The operator of a schema text; None for any other text."""
    if text is None or "->" not in text or "::" not in text:
        return None
    return operator_text(text)
