"""What is run in which mode; imported in a child process with torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.functional.truth import op_db_calls, quantized_calls, schema_calls

Call = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Target:
    """Calls that belong together; a crash loses the record of one target."""

    name: str
    calls: Callable[[], Iterator[Call]]
    made_up: bool = False
    """The calls come from nobody who knows what the operator expects."""


def targets_of(mode: str) -> list[Target]:
    """The targets of a mode, in a fixed order."""
    if mode == "schemas":
        return [Target(n, partial(schema_calls.from_schema, n), True) for n in schema_calls.operator_names()]
    if mode == "quantized":
        modules = [Target(f.__name__, f) for f in quantized_calls.GROUPS]
        return [*modules, *_op_db(mode)]
    return _op_db(mode)


def _op_db(mode: str) -> list[Target]:
    from torch.testing._internal.common_methods_invocations import op_db

    make = op_db_calls.MODES[mode]
    return [Target(op.full_name, partial(make, op)) for op in op_db]
