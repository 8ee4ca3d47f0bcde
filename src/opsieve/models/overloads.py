"""Which overload a TorchScript call means: a question that only PyTorch's own compiler answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from opsieve.errors import OpsieveError
from opsieve.installed import ChildFailed, TorchInstall, run_child

MAX_SECONDS = 120.0
MAX_MEMORY_BYTES = 4 << 30
_CHILD = Path(__file__).with_name("overload_child.py")
_GRACE_SECONDS = 30.0  # to import torch, and to answer after the time for compiling is over


@dataclass(frozen=True, slots=True)
class ScriptSources:
    """The code of one TorchScript model, ready to be compiled without its weights and constants."""

    version: int
    sources: Mapping[str, str]
    """Member -> text, with every constant replaced by an uninitialised value of its type."""

    classes: Sequence[str]
    functions: Sequence[str]


@dataclass(frozen=True, slots=True)
class Resolution:
    """What PyTorch made of the code of one model."""

    calls: dict[str, list[tuple[str, str]]]
    """By qualified name of each function that was compiled: operator and `member:line`, which may be empty."""

    failures: dict[str, str]
    """Why a class or function could not be compiled."""

    dispatched: list[str]
    """Those of the operators that are registered with the dispatcher."""


class OverloadResolver(Protocol):
    """Finds the overloads of all calls in the code of models."""

    def resolve(self, models: Sequence[ScriptSources]) -> list[Resolution | str]:
        """One answer per model: the overloads, or a sentence why there are none."""
        ...


@dataclass(frozen=True, slots=True)
class TorchOverloads:
    """Asks an installed PyTorch, in a child process with a limit on time and memory.

    The child compiles the code but never runs it, and it gets no weights (see overload_child.py).
    """

    torch: TorchInstall
    seconds: float = MAX_SECONDS
    memory_bytes: int = MAX_MEMORY_BYTES

    def resolve(self, models: Sequence[ScriptSources]) -> list[Resolution | str]:
        """Ask for all models at once; if the child dies of it, ask for each alone."""
        try:
            return list(self._ask(models))
        except OpsieveError as error:
            if len(models) == 1:
                return [error.problem]
            return [answer for model in models for answer in self.resolve([model])]

    def _ask(self, models: Sequence[ScriptSources]) -> list[Resolution]:
        import msgspec  # here, because most commands never come this far

        request = {"models": models, "seconds": self.seconds, "memory_bytes": self.memory_bytes}
        answer = run_child(
            self.torch.python,
            _CHILD,
            msgspec.to_builtins(request),
            environment={"OMP_NUM_THREADS": "1", "PYTORCH_JIT_LOG_LEVEL": ""},
            timeout=self.seconds + _GRACE_SECONDS,
        )
        try:
            return msgspec.convert(answer, list[Resolution])
        except msgspec.ValidationError as error:
            raise ChildFailed(_CHILD, 0, f"an answer of another form ({error})") from error
