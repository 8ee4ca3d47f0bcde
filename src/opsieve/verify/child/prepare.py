"""Making inputs, with the stock runtime: the slim one may not even have `torch.randn`.

Request: `model`, `format`, `source` (`{"file": path}`, `{"arguments": [...]}` or `{}` for the model's own), `calls`
(how often each input is given to the same model) and `folder`, where the files go. Event: `prepared`, a list of
`{"label", "file", "plain"}`. A fault of the user is told as `fault`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from opsieve.verify.child.events import Tell
from opsieve.verify.child.models import example_inputs
from opsieve.verify.child.variants import Call, variants


def prepare(request: dict[str, Any], tell: Tell) -> None:
    """Write one file for each kind of input."""
    try:
        given = _given(request)
    except Exception as error:
        tell({"fault": f"{type(error).__name__}: {error}"})
        return
    repeat, folder = request["calls"], Path(request["folder"])
    kinds: list[tuple[str, list[Call], bool]] = []
    for index, call in enumerate(given):
        label = "as given" if len(given) == 1 else f"as given (input {index + 1})"
        kinds.append((label, [call] * repeat, index == 0))
    if len(given) > 1:
        kinds.append(("all inputs, one after the other", given, False))
    kinds += [(label, [call] * repeat, False) for label, call in variants(given[0])]
    tell({"prepared": list(_written(kinds, folder))})


def _written(kinds: Iterable[tuple[str, list[Call], bool]], folder: Path) -> Iterable[dict[str, Any]]:
    for number, (label, calls, plain) in enumerate(kinds):
        file = folder / f"{number}.pt"
        torch.save(calls, file)
        yield {"label": label, "file": str(file), "plain": plain}


def _given(request: dict[str, Any]) -> list[Call]:
    source = request["source"]
    if "file" in source:
        return _calls_in(torch.load(source["file"], weights_only=True))
    if "arguments" in source:
        generator = torch.Generator().manual_seed(0)
        return [(tuple(_argument(argument, generator) for argument in source["arguments"]), {})]
    own = example_inputs(request["model"])
    if own is None:
        raise ValueError("the model holds no example inputs")
    return [(tuple(own[0]), dict(own[1]))]


def _calls_in(content: object) -> list[Call]:
    """A list holds several inputs, a tuple positional arguments, a dict named ones; all else is one argument."""
    if isinstance(content, list):
        if not content:
            raise ValueError("the list of inputs is empty")
        return [_call_in(item) for item in content]
    return [_call_in(content)]


def _call_in(content: object) -> Call:
    if isinstance(content, tuple):
        return content, {}
    if isinstance(content, dict):
        return (), {str(name): value for name, value in content.items()}
    return (content,), {}


def _argument(argument: dict[str, Any], generator: torch.Generator) -> Any:  # noqa: ANN401
    if "value" in argument:
        return argument["value"]
    shape, dtype = argument["shape"], getattr(torch, argument["dtype"])
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if dtype.is_floating_point or dtype.is_complex:
        wide = torch.complex128 if dtype.is_complex else torch.float64
        return torch.randn(shape, generator=generator, dtype=wide).to(dtype)
    return torch.randint(argument["low"], argument["high"], shape, generator=generator, dtype=dtype)
