"""The result of a verification: a plain value that can be printed, counted and written as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opsieve.verify.outcome import Outcome, Verdict
from opsieve.verify.variation import Variation


@dataclass(frozen=True, slots=True)
class Comparison:
    """One variation on both runtimes."""

    variation: Variation
    stock: Outcome
    slim: Outcome
    verdict: Verdict
    reason: str
    """Empty when identical."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Every comparison, in the order of the variations' numbers."""

    stock_version: str
    slim_version: str
    comparisons: tuple[Comparison, ...]

    @property
    def identical(self) -> bool:
        """Whether the slim runtime never did anything else than the stock one.

        Where the stock runtime does not agree with itself nothing is held against the slim one.
        """
        return all(c.verdict in (Verdict.IDENTICAL, Verdict.UNSTABLE) for c in self.comparisons)

    @property
    def models(self) -> tuple[Path, ...]:
        """The models in the order they were tried."""
        return tuple(dict.fromkeys(comparison.variation.model for comparison in self.comparisons))

    def counts(self, model: Path) -> Counter[Verdict]:
        """How often each verdict was found for `model`."""
        return Counter(c.verdict for c in self.comparisons if c.variation.model == model)

    def differences(self, model: Path) -> dict[tuple[Verdict, str], tuple[Variation, ...]]:
        """The variations that were not identical, by verdict and reason."""
        found: dict[tuple[Verdict, str], tuple[Variation, ...]] = {}
        for c in self.comparisons:
            if c.variation.model == model and c.verdict is not Verdict.IDENTICAL:
                key = (c.verdict, c.reason)
                found[key] = (*found.get(key, ()), c.variation)
        return found

    def to_json(self) -> dict[str, Any]:
        """As `json.dump` takes it. Outcomes are only given where they differ."""
        return {
            "identical": self.identical,
            "stock_version": self.stock_version,
            "slim_version": self.slim_version,
            "models": [self._model_json(model) for model in self.models],
        }

    def _model_json(self, model: Path) -> dict[str, Any]:
        compared = [c for c in self.comparisons if c.variation.model == model]
        return {
            "path": str(model),
            "counts": {str(verdict): count for verdict, count in sorted(self.counts(model).items())},
            "variations": [_comparison_json(comparison) for comparison in compared],
        }


def _comparison_json(comparison: Comparison) -> dict[str, Any]:
    variation = comparison.variation
    told: dict[str, Any] = {
        "inputs": variation.inputs.label,
        "settings": asdict(variation.settings),
        "verdict": str(comparison.verdict),
    }
    if comparison.verdict is not Verdict.IDENTICAL:
        told |= {"reason": comparison.reason, "stock": asdict(comparison.stock), "slim": asdict(comparison.slim)}
    return told
