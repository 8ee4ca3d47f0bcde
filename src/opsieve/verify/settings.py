"""How a model is called: the settings that take different ways through PyTorch's code."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product


class GradMode(StrEnum):
    """Which guard the call stands under; each chooses other dispatch keys."""

    NO_GRAD = "no_grad"
    INFERENCE = "inference_mode"
    GRAD = "grad"


class Processor(StrEnum):
    """Which instruction sets the libraries may use. The slim package may run on another machine than this one."""

    NATIVE = "native"
    AVX2 = "avx2"
    BASELINE = "baseline"

    @property
    def environment(self) -> dict[str, str]:
        """The switches of ATen, oneDNN and MKL; all of them are read when a process first needs them."""
        return _SWITCHES[self]


_SWITCHES: dict[Processor, dict[str, str]] = {
    Processor.NATIVE: {},
    Processor.AVX2: {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
    Processor.BASELINE: {
        "ATEN_CPU_CAPABILITY": "default",
        "ONEDNN_MAX_CPU_ISA": "SSE41",
        "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    },
}


@dataclass(frozen=True, slots=True, order=True)
class Settings:
    """Everything about a call but its inputs."""

    threads: int = 2
    mkldnn: bool = True
    grad: GradMode = GradMode.NO_GRAD
    processor: Processor = Processor.NATIVE

    def __str__(self) -> str:
        parts = [f"{self.threads} thread{'s' if self.threads > 1 else ''}", str(self.grad)]
        if not self.mkldnn:
            parts.append("mkldnn off")
        if self.processor is not Processor.NATIVE:
            parts.append(f"{self.processor} processor")
        return ", ".join(parts)


USUAL = Settings()
"""How most programs run a model."""

UNUSUAL = Settings(threads=1, mkldnn=False, grad=GradMode.INFERENCE)
"""Differs from `USUAL` in everything, so that the two together try every switch once."""

ALL_SETTINGS: tuple[Settings, ...] = tuple(
    Settings(threads, mkldnn, grad) for threads, mkldnn, grad in product((2, 1), (True, False), GradMode)
)
"""Every combination on this processor, `USUAL` first."""

OTHER_PROCESSORS: tuple[Settings, ...] = tuple(
    Settings(processor=processor) for processor in Processor if processor is not Processor.NATIVE
)
