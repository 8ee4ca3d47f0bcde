"""Dispatch: the places where code names an operator, and so needs its registrations.

Two kinds: the typed handles that code generation writes, one per operator, behind every `at::_ops::X::call`; and
lookups by name in hand-written code, where the name is a literal. A lookup whose name is computed at run time can be of
any operator; only what the program is told to keep by name is there for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsieve.errors import InvalidFile
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.cpp_text import CppText
from opsieve.runtimes.source.association.names import schema_operator

_HANDLE = re.compile(r"\bcreate_\w+_typed_handle\(\)\s*\{")
_DECLARED = re.compile(r"^//\s*([\w:]+::[\w.]+)\(", re.MULTILINE)
_BY_NAME = re.compile(
    r"\b(?:findSchemaOrThrow|findSchema|findOp|findOpOrThrow|getOperatorForLiteral|OperatorName)\s*[({]\s*(?:c10::OperatorName)?\s*[({]?\s*(?=\")"
)
_TWO_LITERALS = re.compile(r'"([^"\\\n]*)"(?:\s*,\s*"([^"\\\n]*)")?')


@dataclass(frozen=True, slots=True)
class Use:
    """A place that can dispatch an operator."""

    operator: OperatorName
    position: int
    """Where a statement (for a handle) or the operator's literal (for a lookup) begins."""

    literal_end: int | None
    """The end of the literal; None for a handle."""


def find_handles(source: CppText) -> list[Use]:
    """The typed handles of a generated file. Raises InvalidFile if one cannot be given its operator."""
    uses: list[Use] = []
    for match in _HANDLE.finditer(source.plain):
        comments = list(_DECLARED.finditer(source.text, max(0, match.start() - 20_000), match.start()))
        name = schema_operator(comments[-1][1]) if comments else None
        if name is None:
            raise InvalidFile(
                "a typed handle without the comment that names its operator",
                where=f"{source.path}:{source.line(match.start())}",
                expected="what torchgen writes: // namespace::name.overload(...) in front of it",
                remedy="report the version of this source tree; opsieve must learn its shape",
            )
        uses.append(Use(name, match.end(), None))
    return uses


def find_lookups(source: CppText) -> list[Use]:
    """The lookups by a literal name in a file."""
    uses: list[Use] = []
    for match in _BY_NAME.finditer(source.text):
        if not source.plain[match.start()].strip():
            continue  # within a comment or a string
        literals = _TWO_LITERALS.match(source.text, match.end())
        if literals is None:
            continue
        overload = literals[2]
        name = schema_operator(f"{literals[1]}.{overload}" if overload else literals[1])
        if name is not None:
            uses.append(Use(name, match.end(), match.end() + len(literals[1]) + 2))
    return uses
