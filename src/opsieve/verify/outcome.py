"""What came out of a variation, and whether two outcomes are the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor or plain value of a result."""

    at: str
    """Where it stands in the result, such as `[0]['mask']`; empty for the result itself."""

    form: str
    """Type, and for a tensor also shape, strides and flags; for a plain value its text."""

    digest: str
    """SHA-256 of a tensor's bytes; empty for a plain value."""


class OutcomeKind(StrEnum):
    """How a variation ended."""

    RESULTS = "results"
    ERROR = "error"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one runtime made of one variation."""

    kind: OutcomeKind
    calls: tuple[tuple[Leaf, ...], ...] = ()
    """The results of the calls that returned."""

    stage: str = ""
    """What was going on when an error was raised, such as `call 2` or `load`."""

    error: str = ""
    """The exception's type; for a crash, how the process ended."""

    text: str = ""
    """The exception's text, without paths and addresses; for a crash, the last words of the process."""

    @property
    def told(self) -> str:
        """The error or crash in words."""
        return f"{self.error}: {self.text}" if self.text else self.error


class Verdict(StrEnum):
    """What the comparison of two outcomes found."""

    IDENTICAL = "identical"
    DIFFERENT = "different"
    LEFT_OUT = "left out"
    """The slim runtime raised its error for an operator that it does not contain."""

    CRASHED = "crashed"
    UNSTABLE = "unstable"
    """The stock runtime does not agree with itself, so nothing can be said."""


# The error that the stubs of pruned operators raise is a line that names opsieve, which no other error does.
_LEFT_OUT = re.compile(r".*\bopsieve\b.*")
_LONGEST_REASON = 1000


def compare(stock: Outcome, slim: Outcome) -> tuple[Verdict, str]:
    """Compare two outcomes of one variation; the reason is empty when they are the same."""
    if stock == slim or (stock.kind is slim.kind is OutcomeKind.CRASH and stock.error == slim.error):
        return Verdict.IDENTICAL, ""
    if slim.kind is OutcomeKind.CRASH:
        return Verdict.CRASHED, _cut(slim.told)
    told = _LEFT_OUT.search(slim.text)
    if slim.kind is OutcomeKind.ERROR and told and not _LEFT_OUT.search(stock.text):
        return Verdict.LEFT_OUT, _cut(f"{slim.stage}: {told[0].strip()}")
    return Verdict.DIFFERENT, _cut(_difference(stock, slim))


def differ_in_bytes_only(one: Outcome, other: Outcome) -> bool:
    """Whether both ended alike and returned the same structures, and only some tensor's content is not the same."""
    return one != other and _forms(one) == _forms(other)


def _forms(outcome: Outcome) -> tuple[object, ...]:
    calls = tuple(tuple((leaf.at, leaf.form) for leaf in call) for call in outcome.calls)
    return (outcome.kind, calls, outcome.stage, outcome.error, outcome.text)


def _difference(stock: Outcome, slim: Outcome) -> str:
    for number, (expected, found) in enumerate(zip(stock.calls, slim.calls, strict=False), start=1):
        if expected != found:
            return f"call {number}: {_call_difference(expected, found)}"
    if stock.kind is slim.kind is OutcomeKind.ERROR and stock.stage == slim.stage:
        if stock.error != slim.error:
            return f"{stock.stage}: stock raised {stock.told}, slim {slim.told}"
        return f"{stock.stage}: {stock.error} with another text: stock {stock.text!r}, slim {slim.text!r}"
    return f"stock {_ended(stock)}, slim {_ended(slim)}"


def _call_difference(expected: tuple[Leaf, ...], found: tuple[Leaf, ...]) -> str:
    if [leaf.at for leaf in expected] != [leaf.at for leaf in found]:
        return f"stock returned {len(expected)} values, slim {len(found)}, in another structure"
    one, other = next((a, b) for a, b in zip(expected, found, strict=True) if a != b)
    place = f"result{one.at}"
    if one.form != other.form:
        return f"{place} is {one.form} in stock, {other.form} in slim"
    return f"{place} ({one.form}) has other bytes"


def _ended(outcome: Outcome) -> str:
    if outcome.kind is OutcomeKind.RESULTS:
        return f"returned from {len(outcome.calls)} calls"
    if outcome.kind is OutcomeKind.CRASH:
        return f"crashed ({outcome.error})"
    return f"raised {outcome.told} in {outcome.stage}"


def _cut(reason: str) -> str:
    """The two ends of a long reason: TorchScript puts a long trace before what is really said."""
    if len(reason) <= _LONGEST_REASON:
        return reason
    half = _LONGEST_REASON // 2
    return f"{reason[:half]} … {reason[-half:]}"
