"""The account of a link: which operators it kept, who needs them, and how many bytes each of them costs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from opsieve.errors import UnknownOperator
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import SiteKind
from opsieve.select.selection import RuntimeIdentity


@dataclass(frozen=True, slots=True, order=True)
class Sizes:
    """Bytes of a program's image by kind. What is zero at the start (`.bss`) takes none."""

    code: int = 0
    constants: int = 0
    data: int = 0
    """What can be written to, at least while the program is loaded: variables, tables of addresses."""

    unwinding: int = 0
    """What exceptions need to find their way."""

    @property
    def total(self) -> int:
        """All kinds together."""
        return self.code + self.constants + self.data + self.unwinding

    def __add__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.code + other.code,
            self.constants + other.constants,
            self.data + other.data,
            self.unwinding + other.unwinding,
        )

    def __sub__(self, other: Sizes) -> Sizes:
        return Sizes(
            self.code - other.code,
            self.constants - other.constants,
            self.data - other.data,
            self.unwinding - other.unwinding,
        )

    @classmethod
    def sum(cls, parts: Iterable[Sizes]) -> Sizes:
        """The sum of all parts."""
        total = cls()
        for part in parts:
            total += part
        return total


@dataclass(frozen=True, slots=True, order=True)
class KeptOperator:
    """An operator that is in the program."""

    name: OperatorName
    kinds: tuple[SiteKind, ...]
    """Who knows it: the dispatcher (schema), an interpreter, or both."""

    kernels: tuple[str, ...]
    """The dispatch keys for which it has a kernel, sorted."""

    file: str
    line: int
    """Where it is registered."""

    asked: bool
    """Whether the linker was told to keep it, since a model or an option names it."""

    exclusive: Sizes
    """What would go without it."""

    own: Sizes
    """The same, but for what further operators need alone: these do add up."""

    reachable: Sizes
    """Everything that it leads to, further operators included, what the runtime itself needs not."""

    only_here: tuple[OperatorName, ...]
    """The operators that would go with it, sorted."""


@dataclass(frozen=True, slots=True)
class Need:
    """Code of one operator, or of the runtime itself, can dispatch an operator directly."""

    source: OperatorName | None
    """None for the runtime itself."""

    target: OperatorName
    functions: tuple[int, ...]
    """The functions of a shortest way, as positions in `LinkAccount.functions`."""


@dataclass(frozen=True, slots=True, order=True)
class FileSizes:
    """What the program has from one source file."""

    name: str
    sizes: Sizes


@dataclass(frozen=True)
class LinkAccount:
    """Everything a link can tell of its result. A value: it can be saved and loaded."""

    runtime: RuntimeIdentity
    operators: tuple[KeptOperator, ...]
    """Sorted by name, each once."""

    needs: tuple[Need, ...]
    """All direct needs, one for each pair. Ways through what the runtime itself needs do not count."""

    functions: tuple[str, ...]
    """Demangled names."""

    files: tuple[FileSizes, ...]
    """Sorted by name; a function that several files have counts for the one that the linker took it from."""

    core: Sizes
    """What the runtime itself needs, whatever operators there are."""

    shared: Sizes
    """What several operators need, and would go with none of them alone."""

    program_bytes: int
    """Of everything that is loaded; more than the sum of all by what the linker makes itself and takes from the
    system's libraries, less by what it merges."""

    def __contains__(self, name: OperatorName) -> bool:
        return self._find(name) is not None

    def operator(self, name: OperatorName) -> KeptOperator:
        """The account of one operator. Raises UnknownOperator if it is not in the program."""
        found = self._find(name)
        if found is None:
            raise UnknownOperator(f"{name} is not in this runtime")
        return found

    @property
    def alone(self) -> Sizes:
        """What single operators need, and nothing else does. With `core` and `shared` it makes up the total."""
        return Sizes.sum(operator.own for operator in self.operators)

    @property
    def total(self) -> Sizes:
        """All live sections together."""
        return Sizes.sum(file.sizes for file in self.files)

    def needed_by(self) -> dict[OperatorName, tuple[Need, ...]]:
        """Operator -> who needs it directly; the runtime itself first, the rest sorted."""
        found: dict[OperatorName, list[Need]] = {}
        for need in self.needs:
            found.setdefault(need.target, []).append(need)
        return {
            target: tuple(sorted(needs, key=lambda need: (need.source is not None, need.source or need.target)))
            for target, needs in found.items()
        }

    def _find(self, name: OperatorName) -> KeptOperator | None:
        place = bisect_left(self.operators, name, key=attrgetter("name"))
        found = self.operators[place] if place < len(self.operators) else None
        return found if found is not None and found.name == name else None

    def names(self, need: Need) -> tuple[str, ...]:
        """The functions of a need's way."""
        return tuple(self.functions[place] for place in need.functions)
