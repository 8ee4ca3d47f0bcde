"""Functions and data that the analysis treats in a special way, found by name once and kept with the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opsieve.graph.scopes import OBJECT_CLASSES
from opsieve.graph.symbols import is_kernel_wrapper, registration_call
from opsieve.graph.walk import CodeWalker

_STATIC_RUNTIME = re.compile(rb"^_ZN5torch3jit(\d+)(SR(?:Native)?OperatorFunctor_)")
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
    """Entries of Static Runtime's own operator table (torch/csrc/jit/runtime/static/ops.h): function ->
    `namespace_name`, as its macro spells the operator."""


def read_landmarks(walker: CodeWalker) -> Landmarks:
    """Look all names through."""
    data_names = walker.elf.names_of(walker.graph.data.names)
    first = len(walker.names)
    tables = [(first + number, name) for number, name in enumerate(data_names) if name.startswith(b"_ZTV")]
    return Landmarks(
        wrappers=tuple(number for number, name in enumerate(walker.names) if is_kernel_wrapper(name)),
        registrars=tuple(number for number, name in enumerate(walker.names) if registration_call(name)),
        backward=tuple(
            number for number, name in enumerate(walker.names) if b"apply" in name and _BACKWARD.match(name)
        ),
        object_tables={
            str(scope): tuple(node for node, name in tables if any(part in name for part in classes))
            for scope, classes in OBJECT_CLASSES.items()
        },
        static_runtime=dict(_static_runtime(walker.names)),
    )


def _static_runtime(names: list[bytes]) -> Iterator[tuple[int, str]]:
    for number, name in enumerate(names):
        match = _STATIC_RUNTIME.match(name) if b"OperatorFunctor_" in name else None
        # The object keeps a pointer to its lambda `fn`; all that the operator needs hangs on that.
        end = match.start(2) + int(match.group(1)) if match else 0
        if match and name.startswith(b"2fn", end) and b".cold" not in name:
            yield number, name[match.end() : end].decode()


def node_flags(nodes: tuple[int, ...] | list[int], count: int) -> np.ndarray:
    """One flag per node, set for `nodes`."""
    flags = np.zeros(count, bool)
    flags[list(nodes)] = True
    return flags
