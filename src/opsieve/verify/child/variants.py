"""What can be done to an input: other sizes and layouts, and what a model should refuse.

Nothing here knows what the model accepts. A variant that it refuses tests the way of an error, which must be the same
in both runtimes; one that it accepts tests the way of a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

Call = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and named arguments."""

Change = Callable[[Tensor], Tensor]

BATCHES = (0, 1, 3, 8)


def variants(call: Call) -> Iterator[tuple[str, Call]]:
    """Every variant of `call` that differs from it, with a label."""
    first = next(_tensors(call), None)
    if first is not None:
        for label, change in (*_sizes(first), *_layouts(first), *_values(first), *_refusals(first)):
            yield label, _changed(call, change)
    yield "no input at all", ((), {})


def _sizes(first: Tensor) -> Iterator[tuple[str, Change]]:
    """Batches, then the dimensions after it; all tensors that agree in such a size change together."""
    if first.ndim >= 2:
        for batch in BATCHES:
            if batch != first.shape[0]:
                yield f"batch {batch}", _resizing({0: batch}, first)
    spatial = list(range(2, first.ndim))
    groups = [spatial] if first.ndim >= 4 else [[dim] for dim in range(1, first.ndim)]
    for dims in groups:
        for other_size in (_three_quarters, _one_more, _odd_half):
            sizes = {dim: other_size(first.shape[dim]) for dim in dims}
            if any(sizes[dim] != first.shape[dim] for dim in dims):
                shown = [sizes.get(dim, size) for dim, size in enumerate(first.shape)]
                yield f"shape {'×'.join(map(str, shown))}", _resizing(sizes, first)


def _three_quarters(size: int) -> int:
    return size * 3 // 4


def _one_more(size: int) -> int:
    return size + 1


def _odd_half(size: int) -> int:
    return size // 2 | 1


def _layouts(first: Tensor) -> Iterator[tuple[str, Change]]:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    if first.ndim in formats:
        wanted = formats[first.ndim]
        yield "channels_last", lambda t: t.contiguous(memory_format=wanted) if t.ndim == first.ndim else t
    if first.ndim >= 1:
        yield "not contiguous", _with_gaps
    if first.ndim >= 2:
        yield "transposed in memory", lambda t: t.mT.contiguous().mT if t.ndim >= 2 else t


def _values(first: Tensor) -> Iterator[tuple[str, Change]]:
    yield "all zeros", torch.zeros_like
    if first.is_floating_point():
        yield "not a number", lambda t: torch.full_like(t, float("nan")) if t.is_floating_point() else t


def _refusals(first: Tensor) -> Iterator[tuple[str, Change]]:
    """Wrong dtype, wrong rank, wrong channels: what a model should answer with an error."""
    wrong = (torch.float64, torch.bfloat16, torch.int64) if first.is_floating_point() else (torch.float32, torch.int32)
    for dtype in wrong:
        if dtype != first.dtype:
            yield f"dtype {str(dtype).removeprefix('torch.')}", _converting(first.dtype, dtype)
    yield "one dimension more", lambda t: t.unsqueeze(0)
    if first.ndim >= 1 and first.shape[0] > 0:
        yield "one dimension less", lambda t: t[0] if t.ndim >= 1 and t.shape[0] > 0 else t
    if first.ndim >= 4:
        channels = first.shape[1] + 1
        yield f"{channels} channels", _resizing({1: channels}, first)


def _resizing(sizes: dict[int, int], like: Tensor) -> Change:
    """Give dimensions other sizes by repeating or cutting, in every tensor that has the size of `like` there."""

    def resize(tensor: Tensor) -> Tensor:
        for dim, size in sizes.items():
            if dim < tensor.ndim and tensor.shape[dim] == like.shape[dim] > 0:
                tensor = tensor.index_select(dim, torch.arange(size) % tensor.shape[dim])
        return tensor

    return resize


def _converting(old: torch.dtype, new: torch.dtype) -> Change:
    return lambda tensor: tensor.to(new) if tensor.dtype == old else tensor


def _with_gaps(tensor: Tensor) -> Tensor:
    """The same values at every other place of a larger memory."""
    if tensor.ndim == 0:
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], 2 * tensor.shape[-1]))
    wide[..., ::2] = tensor
    return wide[..., ::2]


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _tensors(item)


def _changed(call: Call, change: Change) -> Call:
    arguments, named = call
    return tuple(_map(item, change) for item in arguments), {name: _map(item, change) for name, item in named.items()}


def _map(value: Any, change: Change) -> Any:  # noqa: ANN401 (arguments of any type)
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        return type(value)(_map(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    return value
