"""What a model returned, as (place, form, digest) for every tensor and plain value in it.

The bytes are read straight from memory where they lie densely, so that looking at a result calls no operator that
the slim runtime might not have.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

import torch

Description = tuple[str, str, str]


def describe(value: Any, at: str = "") -> Iterator[Description]:  # noqa: ANN401 (anything a model returns)
    """Walk tuples, lists, dicts and dataclasses; `at` is the place of `value` in the whole result."""
    if isinstance(value, torch.Tensor):
        yield from _describe_tensor(value, at)
    elif isinstance(value, tuple | list):
        yield at, f"{type(value).__name__} of {len(value)}", ""
        for index, item in enumerate(value):
            yield from describe(item, f"{at}[{index}]")
    elif isinstance(value, dict):
        yield at, f"{type(value).__name__} of {len(value)}", ""
        for key, item in value.items():
            yield from describe(item, f"{at}[{key!r}]")
    elif is_dataclass(value):
        yield at, type(value).__name__, ""
        for field in fields(value):
            yield from describe(getattr(value, field.name), f"{at}.{field.name}")
    elif isinstance(value, int | float | complex | str | bytes | None):
        yield at, f"{type(value).__name__} {value!r}", ""
    else:
        yield at, f"object of {type(value).__module__}.{type(value).__qualname__}", ""


def _describe_tensor(tensor: torch.Tensor, at: str) -> Iterator[Description]:
    gradient = ["requires_grad"] if tensor.requires_grad else []
    tensor = tensor.detach()
    # A nested tensor has no shape, or one with a number in it that counts the nested tensors of this process.
    shape = f"nested, {tensor.dim()} dimensions" if tensor.is_nested else str(tuple(tensor.shape))
    form = f"{str(tensor.dtype).removeprefix('torch.')} {shape}"
    if tensor.layout is not torch.strided or tensor.is_nested:
        yield at, " ".join([form, str(tensor.layout), *gradient]), ""
        for name, part in _parts(tensor):
            yield from _describe_tensor(part, f"{at}.{name}")
        return
    flags = [flag for flag in ("is_conj", "is_neg", "is_quantized", "is_inference") if _flag(tensor, flag)]
    told = [form, f"strides {tensor.stride()}", *flags, *gradient, *_quantization(tensor)]
    yield at, " ".join(told), _digest(tensor)


def _flag(tensor: torch.Tensor, name: str) -> bool:
    value = getattr(tensor, name)
    return bool(value() if callable(value) else value)


def _quantization(tensor: torch.Tensor) -> list[str]:
    if not tensor.is_quantized:
        return []
    if tensor.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return [f"scale {tensor.q_scale()!r} zero point {tensor.q_zero_point()}"]
    scales, zeros = tensor.q_per_channel_scales(), tensor.q_per_channel_zero_points()
    return [f"scales {_digest(scales)} zero points {_digest(zeros)} axis {tensor.q_per_channel_axis()}"]


def _parts(tensor: torch.Tensor) -> list[tuple[str, torch.Tensor]]:
    """The dense tensors that a tensor of another layout consists of."""
    if tensor.is_nested:
        return (
            [("values", tensor.values()), ("offsets", tensor.offsets())]
            if tensor.layout is torch.jagged
            else [(f"unbind[{index}]", part) for index, part in enumerate(tensor.unbind())]
        )
    if tensor.layout is torch.sparse_coo:
        return [("indices", tensor._indices()), ("values", tensor._values())]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        rows, columns = tensor.crow_indices(), tensor.col_indices()
        return [("crow_indices", rows), ("col_indices", columns), ("values", tensor.values())]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        columns, rows = tensor.ccol_indices(), tensor.row_indices()
        return [("ccol_indices", columns), ("row_indices", rows), ("values", tensor.values())]
    return [("to_dense()", tensor.to_dense())]


def _digest(tensor: torch.Tensor) -> str:
    """SHA-256 over the bytes of a strided tensor."""
    if tensor.device.type != "cpu":
        tensor = tensor.cpu()
    if not _is_dense(tensor):
        tensor = tensor.clone(memory_format=torch.contiguous_format)
    size = tensor.numel() * tensor.element_size()
    if size == 0:
        return sha256(b"").hexdigest()
    return sha256((ctypes.c_char * size).from_address(tensor.data_ptr())).hexdigest()


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in whatever order of dimensions.

    The order is compared with the strides, so that the bytes alone need not tell it.
    """
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size > 1:
            if stride != expected:
                return False
            expected *= size
    return True
