"""Calls made of torch's own test data (op_db), as functions without arguments; runs in a child process with torch.

Every generator takes one OpInfo and yields calls. A call may raise: an error path is a path too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

Call = Callable[[], object]
Convert = Callable[[torch.Tensor], torch.Tensor]
LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
_CONVERTED = 12
"""How many samples per dtype are tried in other layouts."""

_FEW = 3
"""How many samples per dtype get the variants too (out=, in-place, non-contiguous, ...)."""


def dense(op: Any) -> Iterator[Call]:
    """All samples of all dtypes, with variants, and the inputs that must raise."""
    for dtype in sorted(op.supported_dtypes("cpu"), key=str):
        for number, sample in enumerate(_samples(op.sample_inputs, dtype)):
            yield from _plain(op, sample)
            if number < _FEW:
                yield from _variants(op, sample)
    if op.error_inputs_func is not None:
        for error in _guarded(lambda: op.error_inputs("cpu")):
            yield from _plain(op, error.sample_input)


def grad(op: Any) -> Iterator[Call]:
    """The forward in grad mode, with inputs that require grad."""
    for dtype in (torch.float32, torch.complex64):
        if op.supports_autograd and op.supports_dtype(dtype, "cpu"):
            for sample in _samples(op.sample_inputs, dtype, requires_grad=True):
                yield from _plain(op, sample)


def backward(op: Any) -> Iterator[Call]:
    """The forward in grad mode and the gradients of what came out."""
    for dtype in (torch.float32, torch.complex64):
        if op.supports_autograd and op.supports_dtype(dtype, "cpu"):
            for sample in islice(_samples(op.sample_inputs, dtype, requires_grad=True), _CONVERTED):
                yield lambda s=sample: _differentiate(op(s.input, *s.args, **s.kwargs))


def _differentiate(result: Any) -> None:
    for output in tree_leaves(result):
        if isinstance(output, torch.Tensor) and output.requires_grad:
            output.backward(torch.ones_like(output), retain_graph=True)


def sparse(op: Any) -> Iterator[Call]:
    """Torch's sparse samples, and the dense ones made sparse in five layouts."""
    for layout in LAYOUTS:
        if op.supports_sparse_layout(layout):
            for dtype in (torch.float32, torch.int64, torch.complex64, torch.bfloat16):
                for sample in _samples(lambda *a, k=layout, **kw: op.sample_inputs_sparse(k, *a, **kw), dtype):
                    yield from _plain(op, sample)
    conversions = [
        lambda t: t.to_sparse(),
        lambda t: t.to_sparse().coalesce(),
        lambda t: t.to_sparse_csr(),
        lambda t: t.to_sparse_csc(),
        lambda t: t.to_sparse_bsr((1, 1)),
        lambda t: t.to_sparse_bsc((1, 1)),
    ]
    yield from _converted(op, conversions, (torch.float32, torch.int64, torch.complex64))


def quantized(op: Any) -> Iterator[Call]:
    """The dense samples quantized, per tensor in three dtypes and per channel."""
    kinds = (torch.quint8, torch.qint8, torch.qint32)
    per_tensor = [lambda t, k=kind: torch.quantize_per_tensor(t, 0.1, 3, k) for kind in kinds]
    yield from _converted(op, [*per_tensor, _per_channel], (torch.float32,))


def mkldnn(op: Any) -> Iterator[Call]:
    """The dense samples in oneDNN's own layout."""
    yield from _converted(op, [lambda t: t.to_mkldnn()], (torch.float32, torch.bfloat16))


def nested(op: Any) -> Iterator[Call]:
    """The dense samples as (strided) nested tensors."""
    conversions = [
        lambda t: torch.nested.nested_tensor([t, t]),
        lambda t: torch.nested.nested_tensor([t, t[:1]]),
        lambda t: torch.nested.nested_tensor(list(t)),
    ]
    yield from _converted(op, conversions, (torch.float32,))


def views(op: Any) -> Iterator[Call]:
    """The dense samples as conjugate and negative views, and as zero tensors."""
    zero = lambda t: torch._efficientzerotensor(t.shape, dtype=t.dtype)  # noqa: E731
    negative = lambda t: torch._neg_view(t)  # noqa: E731
    yield from _converted(op, [lambda t: t.conj(), lambda t: t.conj().imag], (torch.complex64,))
    yield from _converted(op, [negative, zero], (torch.float32, torch.complex64))


MODES: dict[str, Callable[[Any], Iterator[Call]]] = {
    f.__name__: f for f in (dense, grad, backward, sparse, quantized, mkldnn, nested, views)
}


def _per_channel(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.size(0)
    return torch.quantize_per_channel(tensor, torch.full((count,), 0.1), torch.zeros(count), 0, torch.qint8)


def _samples(make: Callable[..., Iterable[Any]], dtype: torch.dtype, *, requires_grad: bool = False) -> Iterator[Any]:
    return _guarded(lambda: make("cpu", dtype, requires_grad=requires_grad))


def _guarded(make: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    # Sample generators of some operators raise (SkipTest, missing SciPy): what came before is still good.
    try:
        yield from make()
    except Exception:
        return


def _plain(op: Any, sample: Any) -> Iterator[Call]:
    yield lambda: op(sample.input, *sample.args, **sample.kwargs)


def _variants(op: Any, sample: Any) -> Iterator[Call]:
    args, kwargs = sample.args, sample.kwargs
    yield lambda: (s := sample.noncontiguous()) and op(s.input, *s.args, **s.kwargs)
    yield lambda: (s := sample.transform(_channels_last)) and op(s.input, *s.args, **s.kwargs)
    if (inplace := op.get_inplace()) is not None:
        yield lambda: inplace(sample.input.clone(), *args, **kwargs)
    if op.supports_out:
        for empty in (torch.empty_like, lambda t: t.new_empty(0)):
            yield lambda e=empty: op(sample.input, *args, **kwargs, out=_out(op, sample, e))
    yield lambda: _inference(op, sample)


def _out(op: Any, sample: Any, empty: Convert) -> object:
    result = op(sample.input, *sample.args, **sample.kwargs)
    return tree_map(lambda t: empty(t) if isinstance(t, torch.Tensor) else t, result)


def _channels_last(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim() == 4:
        return value.contiguous(memory_format=torch.channels_last)
    return value


def _inference(op: Any, sample: Any) -> None:
    with torch.inference_mode():
        copy = sample.transform(lambda t: t.clone() if isinstance(t, torch.Tensor) else t)
        op(copy.input, *copy.args, **copy.kwargs)


def _converted(op: Any, conversions: list[Convert], dtypes: Iterable[torch.dtype]) -> Iterator[Call]:
    for dtype in dtypes:
        if op.supports_dtype(dtype, "cpu"):
            for sample in islice(_samples(op.sample_inputs, dtype), _CONVERTED):
                for convert in conversions:
                    yield from _converted_calls(op, sample, convert)


def _converted_calls(op: Any, sample: Any, convert: Convert) -> Iterator[Call]:
    """All tensors converted; in place too; and the first tensor alone."""

    def attempt(value: Any) -> Any:
        try:
            return convert(value) if isinstance(value, torch.Tensor) else value
        except Exception:  # this tensor has no such form; others of the sample may
            return value

    every = sample.transform(attempt)
    yield lambda: op(every.input, *every.args, **every.kwargs)
    if (inplace := op.get_inplace()) is not None:
        yield lambda: inplace(every.input.clone(), *every.args, **every.kwargs)
    first = tree_map(attempt, sample.input)
    yield lambda: op(first, *sample.args, **sample.kwargs)
