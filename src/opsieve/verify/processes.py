"""Running variations in child processes, so that a crash costs one variation and not the rest."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from opsieve.installed import ChildFailed
from opsieve.verify.child_process import SCRIPT, Runtime, SilentChild, started_child
from opsieve.verify.outcome import Outcome, OutcomeKind
from opsieve.verify.variation import Variation

GUARD = "\nopsieve: "
"""How the guard of a slim library begins what it says before it ends the process."""

AT_START, AT_EXIT = "start", "exit"
"""Stages of a crash outside of any variation."""

_LINES = 3
"""How many last lines of a crashed process are kept where the guard has said nothing."""


def ask(runtime: Runtime, request: dict[str, Any], *, seconds: float) -> dict[str, Any]:
    """Send one request; return the last event. Raises ChildFailed when the child fails."""
    with started_child(runtime, {}, request) as child:
        child.patience += seconds
        events = list(child.events())
        child.end_well()
    return events[-1]


def run_variations(
    runtime: Runtime,
    variations: Sequence[Variation],
    *,
    seconds: float,
    finished: Callable[[int], None],
) -> dict[int, Outcome]:
    """The outcome of each variation by its number; `finished` is called with 1 after each.

    `seconds` is how long one variation may take. A child that crashes or hangs in one is replaced and goes on with
    the next. One that crashes before the first gives all that it should have run the same outcome, with the stage
    AT_START; one that crashes after the last gives it to the last, with the stage AT_EXIT.
    Raises MissingInstallation when the torch that is imported is not that of `runtime`.
    """
    outcomes: dict[int, Outcome] = {}
    for processor in dict.fromkeys(variation.settings.processor for variation in variations):
        left = [variation for variation in variations if variation.settings.processor is processor]
        while left:
            new = _run_until_crash(runtime, left, seconds, finished)
            outcomes |= new
            left = [variation for variation in left if variation.number not in new]
    return outcomes


def _run_until_crash(
    runtime: Runtime, variations: Sequence[Variation], seconds: float, finished: Callable[[int], None]
) -> dict[int, Outcome]:
    """Run `variations`, all for one processor, in one child; a crash is the outcome of where it happened."""
    outcomes: dict[int, Outcome] = {}
    current: int | None = None
    request = {
        "task": "run",
        "neutral": dict(runtime.neutral),
        "runs": [_run_request(variation) for variation in variations],
    }
    with started_child(runtime, variations[0].settings.processor.environment, request) as child:
        try:
            for event in child.events():
                if "started" in event:
                    current = event["started"]
                    child.patience = seconds
                elif "finished" in event:
                    outcomes[event["finished"]] = msgspec.convert(event["outcome"], Outcome)
                    current = None
                    finished(1)
            child.end_well()
            if len(outcomes) < len(variations):
                raise ChildFailed(SCRIPT, 0, "it ended before it had done everything")
        except ChildFailed as failure:
            if current is not None:
                outcomes[current] = _crash(failure)
                finished(1)
            elif outcomes:
                outcomes[next(reversed(outcomes))] = _crash(failure, AT_EXIT)
            else:
                outcomes = {variation.number: _crash(failure, AT_START) for variation in variations}
                finished(len(variations))
    return outcomes


def _run_request(variation: Variation) -> dict[str, Any]:
    return {
        "number": variation.number,
        "model": str(variation.model.absolute()),
        "format": variation.format,
        "method": variation.method,
        "inputs": variation.inputs.file,
        "threads": variation.settings.threads,
        "mkldnn": variation.settings.mkldnn,
        "grad": str(variation.settings.grad),
    }


def _crash(failure: ChildFailed, stage: str = "") -> Outcome:
    """How a child ended, and its last words: those of the guard in a slim library, or else its last lines."""
    if isinstance(failure, SilentChild):
        return Outcome(OutcomeKind.CRASH, stage=stage, error=failure.problem)
    status = failure.returncode
    ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    said = failure.stderr.rpartition(GUARD)
    lines = (said[1] + said[2] if said[1] else failure.stderr).strip().splitlines()
    return Outcome(OutcomeKind.CRASH, stage=stage, error=ended, text="\n".join(lines if said[1] else lines[-_LINES:]))
