"""Calls of quantised modules and functions, for every engine; runs in a child process with torch.

Each function of GROUPS yields calls. The modules are made from float ones, with torch's own converters.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.ao.nn.intrinsic as fused
import torch.ao.nn.quantized as q
import torch.ao.nn.quantized.functional as qf
import torch.ao.quantization as ao
from torch import nn

Call = Callable[[], object]


def _image(dimensions: int, channels: int = 4) -> torch.Tensor:
    return torch.rand(2, channels, *[8] * dimensions)


def _quantize(tensor: torch.Tensor, dtype: torch.dtype = torch.quint8) -> torch.Tensor:
    # Weights are qint8, and oneDNN wants their zero point to be 0.
    return torch.quantize_per_tensor(tensor, 0.05, 3 if dtype is torch.quint8 else 0, dtype)


def _on_every_engine(call: Call) -> Iterator[Call]:
    for engine in torch.backends.quantized.supported_engines:
        yield partial(_with_engine, engine, call)


def _with_engine(engine: str, call: Call) -> object:
    torch.backends.quantized.engine = engine
    return call()


def _static(module: nn.Module, inputs: torch.Tensor) -> None:
    """Convert with the engine that is set, run, save and load: packing, computing and unpacking."""
    wrapped = ao.QuantWrapper(copy.deepcopy(module)).eval()
    per_tensor_only = "Transpose" in type(module).__name__
    wrapped.qconfig = ao.default_qconfig if per_tensor_only else ao.get_default_qconfig(torch.backends.quantized.engine)
    prepared = ao.prepare(wrapped)
    prepared(inputs)
    converted = ao.convert(prepared)
    converted(inputs)
    converted.load_state_dict(converted.state_dict())
    torch.jit.script(converted)(inputs)


def static_modules() -> Iterator[Call]:
    """Modules with a static quantised form."""
    for d, (conv, transposed) in enumerate(
        [(nn.Conv1d, nn.ConvTranspose1d), (nn.Conv2d, nn.ConvTranspose2d), (nn.Conv3d, nn.ConvTranspose3d)], start=1
    ):
        for module in (conv(4, 8, 3), conv(4, 4, 3, groups=2, padding=1), transposed(4, 8, 3)):
            yield from _on_every_engine(partial(_static, module, _image(d)))
    for d, module in (
        (1, fused.ConvReLU1d(nn.Conv1d(4, 8, 3), nn.ReLU())),
        (2, fused.ConvReLU2d(nn.Conv2d(4, 8, 3), nn.ReLU())),
        (3, fused.ConvReLU3d(nn.Conv3d(4, 8, 3), nn.ReLU())),
        (2, fused.BNReLU2d(nn.BatchNorm2d(4), nn.ReLU())),
        (3, fused.BNReLU3d(nn.BatchNorm3d(4), nn.ReLU())),
        (2, nn.BatchNorm2d(4)),
        (3, nn.BatchNorm3d(4)),
        (1, nn.InstanceNorm1d(4)),
        (2, nn.InstanceNorm2d(4)),
        (3, nn.InstanceNorm3d(4)),
        (2, nn.GroupNorm(2, 4)),
        (2, nn.LayerNorm(8)),
        (2, nn.PReLU(4)),
        (1, nn.Linear(8, 4)),
        (1, fused.LinearReLU(nn.Linear(8, 4), nn.ReLU())),
    ):
        yield from _on_every_engine(partial(_static, module, _image(d)))
    for activation in (nn.Hardswish, nn.ELU, nn.LeakyReLU, nn.Sigmoid, nn.Softmax, nn.Dropout, nn.ReLU6, nn.MaxPool2d):
        module = activation(2) if activation is nn.MaxPool2d else activation()
        yield from _on_every_engine(partial(_static, module, _image(2)))


def dynamic_modules() -> Iterator[Call]:
    """Modules whose weights are quantised and whose activations are not."""
    sequence, state = torch.rand(5, 2, 8), torch.rand(2, 8)
    for dtype in (torch.qint8, torch.float16):
        for module, inputs in (
            (nn.Linear(8, 4), sequence),
            (nn.LSTM(8, 8, 2, bidirectional=True), sequence),
            (nn.GRU(8, 8, 2), sequence),
            (nn.LSTMCell(8, 8), state),
            (nn.GRUCell(8, 8), state),
            (nn.RNNCell(8, 8), state),
            (nn.RNNCell(8, 8, nonlinearity="relu"), state),
        ):
            yield from _on_every_engine(partial(_dynamic, module, inputs, dtype))
    for d, module in enumerate((nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d), start=1):
        name = getattr(torch.ao.nn.quantized.dynamic, module.__name__)
        yield from _on_every_engine(lambda n=name, d=(d - 1) % 3 + 1: n(4, 8, 3)(_image(d)))


def _dynamic(module: nn.Module, inputs: torch.Tensor, dtype: torch.dtype) -> None:
    converted = ao.quantize_dynamic(nn.Sequential(copy.deepcopy(module)), {type(module)}, dtype=dtype)
    converted(inputs)
    converted.load_state_dict(converted.state_dict())
    torch.jit.script(converted)(inputs)


def embeddings() -> Iterator[Call]:
    """Embedding tables of 8 and 4 bits."""
    indices, offsets = torch.tensor([1, 3, 5, 7]), torch.tensor([0, 2])
    for dtype in (torch.quint8, torch.quint4x2):
        yield lambda t=dtype: q.EmbeddingBag(10, 8, mode="sum", dtype=t)(indices, offsets)
        yield lambda t=dtype: q.Embedding(10, 8, dtype=t)(indices)
        yield lambda t=dtype: q.EmbeddingBag(10, 8, mode="sum", dtype=t).weight()
    for bits in ("byte", "4bit", "2bit"):
        yield partial(_rowwise, bits, indices, offsets)


def _rowwise(bits: str, indices: torch.Tensor, offsets: torch.Tensor) -> None:
    ops = torch.ops.quantized
    packed = getattr(ops, f"embedding_bag_{bits}_prepack")(torch.rand(10, 8))
    getattr(ops, f"embedding_bag_{bits}_unpack")(packed)
    getattr(ops, f"embedding_bag_{bits}_rowwise_offsets")(packed, indices, offsets, include_last_offset=False)


def functional() -> Iterator[Call]:
    """torch.ao.nn.quantized.functional and QFunctional."""
    image, weight = _quantize(_image(2)), _quantize(torch.rand(4, 4, 3, 3), torch.qint8)
    for function, arguments in (
        (qf.adaptive_avg_pool2d, (image, 2)),
        (qf.adaptive_avg_pool3d, (_quantize(_image(3)), 2)),
        (qf.avg_pool2d, (image, 2)),
        (qf.avg_pool3d, (_quantize(_image(3)), 2)),
        (qf.celu, (image, 0.1, 3)),
        (qf.clamp, (image, 0.1, 0.5)),
        (qf.conv1d, (_quantize(_image(1)), _quantize(torch.rand(4, 4, 3), torch.qint8), torch.rand(4))),
        (qf.conv2d, (image, weight, torch.rand(4))),
        (qf.conv3d, (_quantize(_image(3)), _quantize(torch.rand(4, 4, 3, 3, 3), torch.qint8), torch.rand(4))),
        (qf.elu, (image, 0.1, 3)),
        (qf.hardsigmoid, (image,)),
        (qf.hardswish, (image, 0.1, 3)),
        (qf.hardtanh, (image,)),
        (qf.interpolate, (image, None, 2.0)),
        (qf.leaky_relu, (image, 0.1, False, 0.1, 3)),
        (qf.linear, (_quantize(torch.rand(2, 8)), _quantize(torch.rand(4, 8), torch.qint8), torch.rand(4))),
        (qf.max_pool1d, (_quantize(_image(1)), 2)),
        (qf.max_pool2d, (image, 2)),
        (qf.threshold, (image, 0.1, 0.0)),
        (qf.upsample_bilinear, (image, None, 2)),
        (qf.upsample_nearest, (image, None, 2)),
    ):
        for dtype in (torch.quint8, torch.qint8):
            changed = tuple(_requantized(a, dtype) if n == 0 else a for n, a in enumerate(arguments))
            yield from _on_every_engine(partial(function, *changed))
    two, module = (image, _quantize(_image(2))), q.QFunctional()
    for name in ("add", "mul", "add_relu", "matmul"):
        yield from _on_every_engine(partial(getattr(module, name), *two))
    for name in ("add_scalar", "mul_scalar"):
        yield from _on_every_engine(partial(getattr(module, name), image, 2.0))
    yield lambda: module.cat(two, 1)


def _requantized(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return _quantize(tensor.dequantize(), dtype)


def tensors() -> Iterator[Call]:
    """Making, changing and printing quantised tensors."""
    for make in _makers():
        yield from (partial(_used, make, use) for use in _USES)


def _makers() -> Iterator[Callable[[], torch.Tensor]]:
    values, scales, zeros = torch.rand(4, 6), torch.full((4,), 0.1), torch.zeros(4)
    for dtype in (torch.quint8, torch.qint8, torch.qint32, torch.quint4x2):
        yield partial(torch.quantize_per_tensor, values, 0.1, 3, dtype)
        yield lambda t=dtype: torch.quantize_per_tensor([values], scales[:1], zeros[:1], t)[0]
        yield partial(torch.quantize_per_tensor_dynamic, values, dtype, False)
        yield partial(torch.ops.aten._empty_affine_quantized, [4, 6], dtype=dtype, scale=0.1, zero_point=0)
        if dtype is not torch.qint32:  # ends the process
            yield partial(torch.quantize_per_channel, values, scales, zeros.long(), 0, dtype)
            yield partial(torch.quantize_per_channel, values, scales, zeros, 0, dtype)


def _used(make: Callable[[], torch.Tensor], use: Callable[[torch.Tensor], object]) -> object:
    return use(make())


_USES: tuple[Callable[[torch.Tensor], object], ...] = (
    repr,
    copy.deepcopy,
    lambda t: t.dequantize(),
    lambda t: t.int_repr(),
    lambda t: t.q_scale() if t.qscheme() == torch.per_tensor_affine else t.q_per_channel_scales(),
    lambda t: t.clone().copy_(torch.rand(t.shape)),
    lambda t: t[1:3],
    lambda t: t.t().contiguous(),
    lambda t: t.reshape(-1),
    lambda t: torch.cat([t, t]),
    lambda t: torch.stack([t, t]),
    lambda t: t == t,
    lambda t: t.sort(),
    lambda t: t.max(),
    lambda t: t.to(torch.float32),
    lambda t: torch.empty_like(t),
)

GROUPS: tuple[Callable[[], Iterator[Call]], ...] = (
    static_modules,
    dynamic_modules,
    embeddings,
    functional,
    tensors,
)
