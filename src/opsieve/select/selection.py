"""A selection: which operators stay, for which runtime and scopes, and why each of them is there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from opsieve.errors import InvalidFile
from opsieve.operators import OperatorName


class ReasonKind(StrEnum):
    """Who asked for an operator."""

    MODEL = "model"
    """A model calls it: `source` is the model's path, `place` the method."""

    OPTION = "option"
    """The user named it: `source` is `--op` or the file."""

    FRAMEWORK = "framework"
    """PyTorch itself calls it: `source` says for what."""

    DEPENDENCY = "dependency"
    """Another operator needs it: `source` is that operator."""

    ANY_OPERATOR = "any-operator"
    """Any operator may need it, through the fallbacks for lazy views or a tensor's own methods."""


@dataclass(frozen=True, slots=True, order=True)
class Reason:
    """One reason for which an operator stays."""

    kind: ReasonKind
    source: str = ""
    place: str = ""


@dataclass(frozen=True, slots=True, order=True)
class SelectedOperator:
    """An operator that stays."""

    name: OperatorName
    reasons: tuple[Reason, ...]
    """Sorted, at least one."""

    @property
    def is_root(self) -> bool:
        """Whether something asked for the operator itself, and not only another operator."""
        return any(reason.kind in (ReasonKind.MODEL, ReasonKind.OPTION) for reason in self.reasons)


@dataclass(frozen=True, slots=True, order=True)
class RuntimeIdentity:
    """The runtime that a selection was made for; a selection is stale for any other."""

    version: str
    build_id: str


@dataclass(frozen=True, slots=True, order=True)
class ModelIdentity:
    """A model that a selection serves; the selection is stale when the fingerprint changed."""

    path: str
    format: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Selection:
    """What to keep. A value: it can be saved, loaded, merged and compared."""

    runtime: RuntimeIdentity
    scopes: tuple[str, ...]
    models: tuple[ModelIdentity, ...]
    operators: tuple[SelectedOperator, ...]
    """Sorted by name, each once."""

    missing: tuple[SelectedOperator, ...] = ()
    """Operators that the models call and the runtime does not have; a library that the program loads must bring
    them."""

    @property
    def names(self) -> frozenset[str]:
        """The names of all operators that stay."""
        return frozenset(str(operator.name) for operator in self.operators)

    def merge(self, other: Selection) -> Selection:
        """What serves both: associative, commutative and idempotent. Raises InvalidFile for different runtimes."""
        if self.runtime != other.runtime:
            raise InvalidFile(
                f"these selections are for different runtimes: {self.runtime.version} ({self.runtime.build_id[:12]}) "
                f"and {other.runtime.version} ({other.runtime.build_id[:12]})",
                remedy="make both for the same PyTorch",
            )
        return Selection(
            runtime=self.runtime,
            scopes=tuple(sorted({*self.scopes, *other.scopes})),
            models=tuple(sorted({*self.models, *other.models})),
            operators=join_operators((*self.operators, *other.operators)),
            missing=join_operators((*self.missing, *other.missing)),
        )


def join_operators(operators: Iterable[SelectedOperator]) -> tuple[SelectedOperator, ...]:
    """Each name once, with the reasons of all its occurrences."""
    reasons: dict[OperatorName, set[Reason]] = {}
    for operator in operators:
        reasons.setdefault(operator.name, set()).update(operator.reasons)
    return tuple(SelectedOperator(name, tuple(sorted(found))) for name, found in sorted(reasons.items()))
