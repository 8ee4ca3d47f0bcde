"""Running variations: each with a model loaded afresh, since models can have state."""

from __future__ import annotations

import re
from typing import Any

import torch

from opsieve.verify.child.describe import describe
from opsieve.verify.child.events import Tell
from opsieve.verify.child.models import grad_mode, load

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


def run_all(request: dict[str, Any], tell: Tell) -> None:
    """Run `request["runs"]` in order; tell `started` before and `finished` with the outcome after each.

    `request["neutral"]` maps what is to be replaced in error texts.
    """
    for run in request["runs"]:
        tell({"started": run["number"]})
        tell({"finished": run["number"], "outcome": _Attempt(run, request["neutral"]).outcome()})


class _Attempt:
    """One variation, and how far it got."""

    def __init__(self, run: dict[str, Any], neutral: dict[str, str]) -> None:
        self._run = run
        self._neutral = neutral
        self._stage = "settings"
        self._calls: list[list[dict[str, str]]] = []

    def outcome(self) -> dict[str, Any]:
        """The outcome as `opsieve.verify.outcome.Outcome` reads it."""
        try:
            self._attempt()
        except Exception as error:
            return {
                "kind": "error",
                "calls": self._calls,
                "stage": self._stage,
                "error": f"{type(error).__module__}.{type(error).__qualname__}",
                "text": self._neutral_text(str(error)),
            }
        return {"kind": "results", "calls": self._calls}

    def _attempt(self) -> None:
        torch.manual_seed(0)
        torch.set_num_threads(self._run["threads"])
        torch.backends.mkldnn.set_flags(self._run["mkldnn"])
        self._stage = "load"
        model = load(self._run["model"], self._run["format"])
        method = model if self._run["method"] == "forward" else getattr(model, self._run["method"])
        self._stage = "inputs"
        calls = torch.load(self._run["inputs"], weights_only=True)
        with grad_mode(self._run["grad"]):
            for number, (arguments, named) in enumerate(calls, start=1):
                self._stage = f"call {number}"
                result = method(*arguments, **named)
                self._stage = f"result of call {number}"
                leaves = [dict(zip(("at", "form", "digest"), leaf, strict=True)) for leaf in describe(result)]
                self._calls.append(leaves)

    def _neutral_text(self, text: str) -> str:
        for name, replacement in self._neutral.items():
            text = text.replace(name, replacement)
        return _ADDRESS.sub("0x<address>", text)
