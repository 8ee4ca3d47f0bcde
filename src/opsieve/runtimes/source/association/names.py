"""The linker's names for operators and for their registrations.

Lengths stand before the parts, as in C++'s own mangling, so that no two operators share a symbol: `aten::add.Tensor` is
`opsieve_op_4aten3add6Tensor`.
"""

from __future__ import annotations

import re

from opsieve.errors import UnknownOperator
from opsieve.operators import OperatorName

TABLE = "opsieve_registrations"
"""The section of the table. A C identifier, so that the linker provides __start_ and __stop_ symbols for it."""


def operator_symbol(name: OperatorName) -> str:
    """The symbol of an operator's schema; whatever can dispatch the operator refers to it."""
    return f"opsieve_op_{mangled(name)}"


def kernel_symbol(name: OperatorName, key: str) -> str:
    """The symbol of an operator's kernel for a dispatch key; the operator's schema refers to it."""
    return f"opsieve_kernel_{key}_{mangled(name)}"


def interpreter_symbol(name: OperatorName, kind: str) -> str:
    """The symbol of an operator that only an interpreter has; `kind` tells the table it is found in."""
    return f"opsieve_{kind}_{mangled(name)}"


def mangled(name: OperatorName) -> str:
    """The parts of the name, each with its length in front."""
    parts = [*name.namespace.split("::"), name.base, *([name.overload] if name.overload else [])]
    return "".join(f"{len(part)}{part}" for part in parts)


def parse_operator_symbol(symbol: str) -> OperatorName | None:
    """The operator of an `opsieve_op_` symbol, or None. Namespaces have one part, as all of PyTorch's do."""
    if not symbol.startswith("opsieve_op_"):
        return None
    rest, parts = symbol.removeprefix("opsieve_op_"), []
    while rest:
        digits = re.match(r"[0-9]{1,4}", rest)
        if digits is None:
            return None
        length = int(digits[0])
        parts.append(rest[digits.end() : digits.end() + length])
        rest = rest[digits.end() + length :]
    if len(parts) not in (2, 3) or not all(parts):
        return None
    return OperatorName(parts[0], parts[1], parts[2] if len(parts) == 3 else "")


def schema_operator(schema: str, namespace: str = "") -> OperatorName | None:
    """The operator that a schema string or a bare name declares, or None if it is neither."""
    name = schema.partition("(")[0].strip()
    try:
        return OperatorName.parse(name if "::" in name else f"{namespace}::{name}")
    except UnknownOperator:
        return None
