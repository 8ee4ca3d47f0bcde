"""Operator graphs made by hand: nodes are numbers, edges are pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from opsieve.code.data import DataTable
from opsieve.code.functions import FunctionTable
from opsieve.code.graph import CodeGraph, compress
from opsieve.code.links import Links
from opsieve.code.plt import Plt
from opsieve.code.references import References
from opsieve.graph.invocations import Invocations
from opsieve.graph.landmarks import Landmarks
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.registrations import Registration

FUNCTION_SIZE = 16
_NONE = np.empty(0, np.int64)
_NO = np.empty(0, bool)


def code_graph(functions: int, data: int, edges: Iterable[tuple[int, int]]) -> CodeGraph:
    """Functions of 16 bytes each, and as many data objects behind them."""
    count = functions + data
    starts = np.arange(count, dtype=np.int64) * FUNCTION_SIZE
    nameless = np.full(count, -1, np.int64)
    pairs = np.array([*edges], np.int64).reshape(-1, 2)
    first_edge, targets = compress(pairs[:, 0], pairs[:, 1], count)
    return CodeGraph(
        build_id="00" * 20,
        functions=FunctionTable(
            starts[:functions], starts[:functions] + FUNCTION_SIZE, nameless[:functions], starts[:functions]
        ),
        data=DataTable(starts[functions:], starts[functions:] + FUNCTION_SIZE, nameless[functions:]),
        plt=Plt(_NONE, _NONE, _NONE),
        links=Links(_NONE, _NONE),
        references=References(_NONE, _NONE, _NO, _NONE, _NONE, _NO, _NONE),
        first_edge=first_edge,
        targets=targets,
    )


def op_graph(
    functions: int,
    edges: Iterable[tuple[int, int]],
    kernels: Mapping[tuple[str, str], Sequence[int]],
    entries: Mapping[int, str],
    *,
    lookups: Iterable[tuple[int, str]] = (),
    data: int = 0,
    declared: Iterable[str] = (),
    initialisers: Sequence[int] = (),
    wrappers: Sequence[int] = (),
    registrars: Sequence[int] = (),
    backward: Sequence[int] = (),
    object_tables: Mapping[str, Sequence[int]] | None = None,
    static_runtime: Mapping[int, str] | None = None,
) -> OpGraph:
    """`kernels`: (operator, key) -> functions; `_::*` is the fallback. `entries`: dispatch entry -> operator."""
    registrations = [Registration(operator, key, tuple(found), False) for (operator, key), found in kernels.items()]
    operators = {operator for operator, _ in kernels if operator != "_::*"}
    operators.update(entries.values(), (operator for _, operator in lookups), declared)
    return OpGraph(
        code=code_graph(functions, data, edges),
        operators=tuple(sorted(operators)),
        all_registrations=tuple(registrations),
        initialisers=tuple(initialisers),
        invocations=Invocations(dict(entries), tuple(lookups), ()),
        landmarks=Landmarks(
            wrappers=tuple(wrappers),
            registrars=tuple(registrars),
            backward=tuple(backward),
            object_tables={scope: tuple(nodes) for scope, nodes in (object_tables or {}).items()},
            static_runtime=dict(static_runtime or {}),
        ),
    )
