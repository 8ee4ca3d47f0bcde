"""What models need, as their files say it: the value that every reader returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from opsieve.operators import OperatorName


class Reach(StrEnum):
    """Where a call of the operator goes."""

    DISPATCHER = "dispatcher"
    """Registered with PyTorch's dispatcher: it has kernels, and can be pruned."""

    INTERPRETER = "interpreter"
    """Only the TorchScript interpreter has it (`prim::*`, `aten::len.t`, ...): nothing to prune."""


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """One place of a model that calls an operator."""

    method: str
    """Qualified name of the method or graph, such as `__torch__.Net.forward`."""

    place: str
    """Member of the file and line or index in it, such as `code/__torch__.py:12`."""


@dataclass(frozen=True, slots=True, order=True)
class RootOperator:
    """An operator that the model itself calls."""

    name: OperatorName
    all_overloads: bool
    """True when only the base name is known, so that every overload must be taken to be needed."""

    reach: Reach
    uses: tuple[Use, ...]
    """Sorted, at least one."""


@dataclass(frozen=True, slots=True)
class ModelNeeds:
    """The root operators of one model file, all methods together."""

    path: str
    format: str
    """`torchscript`, `lite`, `lite-flatbuffer` or `export`."""

    fingerprint: str
    """Changes when the model changes; costs no reading of the weights (the zip's own checksums are used)."""

    roots: tuple[RootOperator, ...]
    """Sorted by name, each name once."""

    methods: tuple[str, ...]
    custom_classes: tuple[str, ...]
    """C++ classes (`__torch__.torch.classes.*`) that the model uses, sorted."""

    notes: tuple[str, ...] = ()
    """What could not be told exactly, in sentences for the user."""
