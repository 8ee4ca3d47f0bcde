"""Where operators are registered: one site per schema, kernel, interpreter operator or custom class."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from opsieve.operators import OperatorName


class SiteKind(StrEnum):
    """What a registration registers."""

    SCHEMA = "schema"
    """The operator itself: `m.def`."""

    KERNEL = "kernel"
    """An implementation for one dispatch key: `m.impl`."""

    INTERPRETER = "interpreter"
    """An operator of TorchScript's interpreters that the dispatcher does not know."""

    PROMOTED = "promoted"
    """A function that the lite interpreter calls in place of an operator."""


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """One registration. `symbol` is what the linker knows it by, `file` the source that holds it."""

    kind: SiteKind
    operator: OperatorName
    symbol: str
    file: str
    line: int
    key: str = ""
    """The dispatch key of a kernel."""


ROOT_KINDS = (SiteKind.SCHEMA, SiteKind.INTERPRETER, SiteKind.PROMOTED)
"""What a model that calls the operator by its name looks up; kernels come with the schema."""


class Sites:
    """All registrations of a tree, found by operator and by symbol."""

    def __init__(self, sites: Iterable[Site]) -> None:
        self.all = tuple(sorted(set(sites)))
        self.by_symbol = {site.symbol: site for site in self.all}
        self._by_operator: dict[OperatorName, list[Site]] = defaultdict(list)
        for site in self.all:
            self._by_operator[site.operator].append(site)

    def of(self, operator: OperatorName) -> tuple[Site, ...]:
        """All registrations of one operator."""
        return tuple(self._by_operator.get(operator, ()))

    def roots(self, operator: OperatorName) -> tuple[str, ...]:
        """The symbols to keep for an operator that is called by its name; empty if the tree has no such operator."""
        return tuple(site.symbol for site in self.of(operator) if site.kind in ROOT_KINDS)

    def kernels(self, operator: OperatorName) -> tuple[Site, ...]:
        """The kernels of one operator."""
        return tuple(site for site in self.of(operator) if site.kind is SiteKind.KERNEL)

    @property
    def operators(self) -> frozenset[OperatorName]:
        """Every operator of the tree that can be asked for by name."""
        return frozenset(site.operator for site in self.all if site.kind in ROOT_KINDS)
