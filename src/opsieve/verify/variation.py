"""What is tried: every kind of input under the settings that may treat it differently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsieve.verify.settings import ALL_SETTINGS, OTHER_PROCESSORS, UNUSUAL, USUAL, Settings


@dataclass(frozen=True, slots=True)
class PreparedInputs:
    """Inputs of one model, ready in a file, so that both runtimes get the same bytes and neither has to make them."""

    label: str
    """What is special about them, such as `batch 3` or `channels_last`."""

    file: str
    plain: bool
    """True for the inputs as they were given: these are tried under all settings."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One experiment: a fresh copy of a model, inputs, settings."""

    number: int
    model: Path
    format: str
    method: str
    inputs: PreparedInputs
    settings: Settings

    @property
    def label(self) -> str:
        """Inputs and settings in words."""
        return f"{self.inputs.label}; {self.settings}"


def settings_for(inputs: PreparedInputs, *, thorough: bool) -> tuple[Settings, ...]:
    """All settings for inputs as given (for all inputs when `thorough`), two opposite ones for the others."""
    if inputs.plain or thorough:
        return (*ALL_SETTINGS, *OTHER_PROCESSORS)
    return (USUAL, UNUSUAL)


def variations(
    model: Path,
    model_format: str,
    method: str,
    prepared: Sequence[PreparedInputs],
    *,
    thorough: bool,
) -> Iterator[Variation]:
    """The experiments with one model, numbered from 0."""
    tried = ((inputs, settings) for inputs in prepared for settings in settings_for(inputs, thorough=thorough))
    for number, (inputs, settings) in enumerate(tried):
        yield Variation(number, model, model_format, method, inputs, settings)
