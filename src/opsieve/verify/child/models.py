"""Loading a model the way a user of its format does."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def load(path: str, model_format: str) -> Any:  # noqa: ANN401 (a module of any of four kinds)
    """A fresh model in evaluation mode. `model_format` is that of `opsieve.models`."""
    model = _LOADERS[model_format](path)
    if model_format == "torchscript":
        model.eval()
    return model


def example_inputs(path: str) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The example inputs stored in an exported program: positional and named ones."""
    inputs: tuple[tuple[Any, ...], dict[str, Any]] | None = torch.export.load(path).example_inputs
    return inputs


def _load_lite(path: str | io.BytesIO) -> Any:  # noqa: ANN401
    from torch.jit.mobile import _load_for_lite_interpreter

    return _load_for_lite_interpreter(path)


def _load_flatbuffer(path: str) -> Any:  # noqa: ANN401
    # From a path the weights are freed too early in PyTorch 2.13.0: the first call crashes.
    return _load_lite(io.BytesIO(Path(path).read_bytes()))


def _load_exported(path: str) -> Any:  # noqa: ANN401
    return torch.export.load(path).module()


_LOADERS: dict[str, Callable[[str], Any]] = {
    "torchscript": torch.jit.load,
    "lite": _load_lite,
    "lite-flatbuffer": _load_flatbuffer,
    "export": _load_exported,
}


@contextlib.contextmanager
def grad_mode(name: str) -> Any:  # noqa: ANN401
    """The guard of one of the three modes."""
    guards = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode, "grad": torch.enable_grad}
    with guards[name]():
        yield
