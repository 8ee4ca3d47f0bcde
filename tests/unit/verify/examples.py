"""Variations and outcomes for the tests of this folder."""

from pathlib import Path

from opsieve.verify.outcome import Leaf, Outcome, OutcomeKind
from opsieve.verify.settings import USUAL
from opsieve.verify.variation import PreparedInputs, Variation


def variation(number=0, label="as given", settings=USUAL, model="m.pt"):
    return Variation(number, Path(model), "torchscript", "forward", PreparedInputs(label, "0.pt", False), settings)


def results(*digests, form="float32 (2,) strides (1,)"):
    """One call for each digest, each returning one tensor."""
    return Outcome(OutcomeKind.RESULTS, calls=tuple((Leaf("", form, digest),) for digest in digests))


def error(text, kind="builtins.RuntimeError", stage="call 1"):
    return Outcome(OutcomeKind.ERROR, stage=stage, error=kind, text=text)


def crash(ended, text=""):
    return Outcome(OutcomeKind.CRASH, error=ended, text=text)
