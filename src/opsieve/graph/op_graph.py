"""The operator graph of one library: its operators, their kernels, and who calls whom through the dispatcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from opsieve.code.elf import ElfFile
from opsieve.code.graph import CodeGraph, build_code_graph
from opsieve.errors import UnknownOperator, UnsupportedLibrary
from opsieve.graph.interpreter import read_interpreter_operators
from opsieve.graph.invocations import Invocations, read_invocations
from opsieve.graph.landmarks import Landmarks, read_landmarks
from opsieve.graph.registrations import Registration, read_registrations
from opsieve.graph.symbols import INTERPRETER
from opsieve.graph.walk import CodeWalker
from opsieve.operators import OperatorName
from opsieve.progress import SILENT, Progress


@dataclass(frozen=True)
class OpGraph:
    """What one library registers and dispatches. Function and node numbers are those of `code`."""

    code: CodeGraph
    operators: tuple[str, ...]
    """Sorted names of everything that is registered or dispatched."""

    all_registrations: tuple[Registration, ...]
    initialisers: tuple[int, ...]
    """Functions that register something."""

    invocations: Invocations
    landmarks: Landmarks
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_index", {name: number for number, name in enumerate(self.operators)})

    @property
    def build_id(self) -> str:
        """The build id of the library."""
        return self.code.build_id

    def number(self, operator: str) -> int:
        """Position in `operators`; raises UnknownOperator if the library does not have it."""
        try:
            return self._index[operator]
        except KeyError:
            raise UnknownOperator(f"this PyTorch has no operator {operator}") from None

    def __contains__(self, operator: str) -> bool:
        return operator in self._index

    @cached_property
    def registrations(self) -> Mapping[str, Mapping[str, tuple[int, ...]]]:
        """Kernels by operator and dispatch key; a fallthrough has no kernel. Schemas without a kernel are left out."""
        found: dict[str, dict[str, list[int]]] = {}
        for registration in self.all_registrations:
            if registration.kernels or not registration.is_definition:
                by_key = found.setdefault(registration.operator, {})
                by_key.setdefault(registration.key, []).extend(registration.kernels)
        return MappingProxyType(
            {
                operator: MappingProxyType({key: tuple(dict.fromkeys(kernels)) for key, kernels in by_key.items()})
                for operator, by_key in found.items()
            }
        )

    @cached_property
    def fallbacks(self) -> Mapping[str, tuple[int, ...]]:
        """Kernels of backend fallbacks, which serve all operators, by dispatch key."""
        return self.registrations.get("_::*", MappingProxyType({}))

    def reaches_dispatcher(self, operator: str) -> bool:
        """False for an operator that only the TorchScript interpreter has."""
        return INTERPRETER not in self.registrations.get(operator, {})

    def overloads(self, base_name: str) -> tuple[str, ...]:
        """All operators of one base name, such as `aten::add`."""
        return self._by_base.get(base_name, ())

    @cached_property
    def _by_base(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for operator in self.operators:
            found.setdefault(OperatorName.parse(operator).base_name, []).append(operator)
        return {base: tuple(operators) for base, operators in found.items()}

    def entries_of(self, operators: Iterable[str]) -> np.ndarray:
        """The dispatch entries (function numbers) of some operators."""
        wanted = set(operators)
        return np.array([f for f, operator in self.invocations.entries.items() if operator in wanted], np.int64)


def build_op_graph(elf: ElfFile, progress: Progress = SILENT) -> OpGraph:
    """Analyse a library from nothing.

    Raises UnsupportedLibrary when the library is not one whose shape we know: nothing is analysed by halves.
    """
    code = build_code_graph(elf, progress)
    with progress.stage("reading registrations") as advance:
        walker = CodeWalker(elf, code)
        registrations, initialisers = read_registrations(walker)
        dispatched = {found.operator for found in registrations if not found.operator.endswith("*")}
        invocations = read_invocations(walker, dispatched)
        dispatched.update(invocations.entries.values())
        interpreted = read_interpreter_operators(walker, dispatched)
        advance(1)
    _require_known_shape(elf, dispatched, invocations)
    operators = tuple(sorted(dispatched.union(found.operator for found in interpreted)))
    return OpGraph(
        code, operators, (*registrations, *interpreted), tuple(initialisers), invocations, read_landmarks(walker)
    )


def _require_known_shape(elf: ElfFile, registered: set[str], invocations: Invocations) -> None:
    if not registered:
        raise UnsupportedLibrary(
            "no operator registrations were found", where=elf.path, expected="a library with TORCH_LIBRARY blocks"
        )
    if invocations.unnamed:
        raise UnsupportedLibrary(
            f"the dispatcher name of at::_ops::{invocations.unnamed[0]} was not found "
            f"(and of {len(invocations.unnamed) - 1} more)",
            where=elf.path,
            remedy="this build of PyTorch is shaped in a way that is not understood yet; use torch 2.13.0",
        )
