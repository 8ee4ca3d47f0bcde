"""Operator names: `namespace::name.overload`, the unit that PyTorch's dispatcher knows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsieve.errors import UnknownOperator

# c10::OperatorName allows more; these are the names that schemas can be written with
# (torch/csrc/jit/frontend/function_schema_parser.cpp).
_NAME = re.compile(r"([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)::([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?")
MAX_NAME_LENGTH = 512


@dataclass(frozen=True, slots=True, order=True)
class OperatorName:
    """One operator, overload included. An empty `overload` is the default overload, not "any"."""

    namespace: str
    base: str
    overload: str = ""

    @classmethod
    def parse(cls, text: str) -> OperatorName:
        """Read `ns::name` or `ns::name.overload`; `.default` is how Python spells the empty overload.

        Raises UnknownOperator when the text is no operator name.
        """
        match = _NAME.fullmatch(text) if len(text) <= MAX_NAME_LENGTH else None
        if match is None:
            raise UnknownOperator(
                f"{text[:80]!r} is not an operator name",
                expected="namespace::name or namespace::name.overload, such as aten::add.Tensor",
            )
        namespace, base, overload = match.groups()
        return cls(namespace, base, "" if overload in (None, "default") else overload)

    @property
    def base_name(self) -> str:
        """`namespace::name`, without the overload."""
        return f"{self.namespace}::{self.base}"

    def __str__(self) -> str:
        return f"{self.base_name}.{self.overload}" if self.overload else self.base_name
