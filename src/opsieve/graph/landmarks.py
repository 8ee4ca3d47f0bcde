"""Functions and data that the analysis treats in a special way, found by name once and kept with the graph."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from opsieve.graph.scopes import OBJECT_CLASSES, Scope
from opsieve.graph.symbols import is_kernel_wrapper, registration_call
from opsieve.graph.walk import CodeWalker

_STATIC_RUNTIME = re.compile(rb"SR(?:Native)?OperatorFunctor_([A-Za-z0-9_]+?)(?:E|C[12]|D[0-2]|4call|\d|$)")
_BACKWARD = re.compile(rb"^_ZN5torch8autograd.*\d(?:apply|apply_with_saved)E(?:OSt6vector|R)")


@dataclass(frozen=True, slots=True)
class Landmarks:
    """Node numbers of the code graph."""

    wrappers: tuple[int, ...]
    """Boxed and unboxed entries of kernels: registering a kernel refers to them, only the dispatcher calls them."""

    registrars: tuple[int, ...]
    """`torch::Library::impl` and its like."""

    backward: tuple[int, ...]
    """`apply` of autograd nodes: the backward formulas, which hang on forward kernels by the nodes' virtual tables."""

    object_tables: dict[str, tuple[int, ...]]
    """Virtual tables of the classes that tensors of a scope are made of."""

    static_runtime: dict[int, str]
    """Functions of Static Runtime's own operator table: function -> `namespace_name` as in its macro."""


def read_landmarks(walker: CodeWalker) -> Landmarks:
    """Look all names through."""
    data_names = walker.elf.names_of(walker.graph.data.names)
    first = len(walker.names)
    tables = [(first + number, name) for number, name in enumerate(data_names) if name.startswith(b"_ZTV")]
    return Landmarks(
        wrappers=tuple(number for number, name in enumerate(walker.names) if is_kernel_wrapper(name)),
        registrars=tuple(number for number, name in enumerate(walker.names) if registration_call(name)),
        backward=tuple(number for number, name in enumerate(walker.names) if _BACKWARD.match(name)),
        object_tables={
            str(scope): tuple(node for node, name in tables if any(part in name for part in classes))
            for scope, classes in OBJECT_CLASSES.items()
        },
        static_runtime=dict(_static_runtime(walker.names)),
    )


def _static_runtime(names: list[bytes]) -> list[tuple[int, str]]:
    found = ((number, _STATIC_RUNTIME.search(name)) for number, name in enumerate(names) if b"OperatorFunctor_" in name)
    return [(number, match.group(1).decode()) for number, match in found if match]


def node_flags(nodes: tuple[int, ...] | list[int], count: int) -> np.ndarray:
    """One flag per node, set for `nodes`."""
    flags = np.zeros(count, bool)
    flags[list(nodes)] = True
    return flags
