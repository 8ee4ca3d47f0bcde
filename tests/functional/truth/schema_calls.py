"""Calls made up from operator schemas: reaches the operators that torch's test data leaves out.

Arguments are drawn at random (seeded by the operator's name) from small pools by type; most combinations are refused,
which costs little. A call is worth something when it gets far enough to dispatch, right or wrong.
Runs in a child process with torch.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

Call = Callable[[], object]
Form = Callable[[torch.Tensor], torch.Tensor]

ATTEMPTS = 200
ENOUGH = 60
"""Calls of one operator that returned; then the next operator."""

# Need other processes or devices, act on files, or exist to end or observe the process.
_LEFT_OUT = ("c10d", "symm_mem", "_c10d_functional", "_dtensor", "profiler::", "debug_mode_ops", "aten::from_file")
_SHAPES = [(), (0,), (1,), (4,), (2, 4), (4, 4), (4, 2), (2, 4, 4), (1, 4, 6, 6), (2, 4, 6, 6), (1, 4, 4, 4, 4)]
_DTYPES = [torch.float32, torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool]
_OTHER_DTYPES = [torch.complex64, torch.bfloat16, torch.float16, torch.int8]
_STRINGS = [
    "mean",
    "sum",
    "none",
    "tanh",
    "amax",
    "prod",
    "linear",
    "reflect",
    "ij",
    "inf",
    "nuc",
    "fro",
    "max",
    "gelu",
    "L",
]
_NUMBERS = [0, 1, 2, -1, 3, 0.5, 1.0, True]
_SIMPLE: dict[str, list[Any]] = {
    "int": [0, 1, 2, -1, 3, 4, 0, 1],
    "SymInt": [0, 1, 2, -1, 3, 4],
    "float": [0.5, 1.0, 0.0, 1e-5, 2.0],
    "bool": [True, False],
    "number": _NUMBERS,
    "complex": [1j],
    "str": _STRINGS,
    "ScalarType": [torch.float32, torch.float64, torch.int64, torch.quint8, torch.qint8, torch.bfloat16],
    "Layout": [torch.strided, torch.sparse_coo, torch.sparse_csr],
    "Device": [torch.device("cpu")],
    "MemoryFormat": [torch.contiguous_format, torch.channels_last, torch.preserve_format],
    "Generator": [torch.default_generator],
}


def operator_names() -> list[str]:
    """Every operator of the dispatcher that can sensibly be called this way, sorted."""
    names = torch._C._dispatch_get_all_op_names()
    return sorted(name for name in names if not name.startswith(_LEFT_OUT))


def from_schema(name: str) -> Iterator[Call]:
    """Calls of one operator, until enough of them returned."""
    base, _, overload = name.partition(".")
    schema = torch._C._get_schema(base, overload)
    operation = torch._C._get_operation_overload(base, overload)[0]
    choose = random.Random(name)
    returned: list[None] = []
    for _ in range(ATTEMPTS):
        if len(returned) >= ENOUGH:
            return
        yield partial(_attempt, operation, schema, choose, returned)


def _attempt(operation: Any, schema: Any, choose: random.Random, returned: list[None]) -> None:
    tensors = _Tensors(choose, _QUANTIZED if schema.name.startswith("quantized::") else _FORMS)
    positional, keywords = [], {}
    for argument in schema.arguments:
        if argument.has_default_value() and choose.random() < 0.6:
            if argument.kwarg_only:
                continue
            value = argument.default_value
        else:
            value = _value(str(argument.real_type), argument.N, tensors, choose)
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    operation(*positional, **keywords)
    returned.append(None)


def _value(kind: str, count: int | None, tensors: _Tensors, choose: random.Random) -> Any:
    if kind.startswith("Optional["):
        return None if choose.random() < 0.5 else _value(kind[9:-1], count, tensors, choose)
    if kind.startswith("List["):
        length = count or choose.randint(0, 4)
        return [_value(kind[5:-1], None, tensors, choose) for _ in range(length)]
    if kind == "Tensor":
        return tensors.next()
    if kind in _SIMPLE:
        return choose.choice(_SIMPLE[kind])
    packed = packed_parameters().get(kind)
    if not packed:
        raise NotImplementedError(kind)
    return choose.choice(packed)


class _Tensors:
    """The tensors of one call: usually of one shape, one dtype and one form."""

    def __init__(self, choose: random.Random, forms: list[Form]) -> None:
        self._choose = choose
        self._shape = choose.choice(_SHAPES)
        self._dtype = choose.choice(_DTYPES if choose.random() < 0.85 else _OTHER_DTYPES)
        self._form = choose.choice(forms) if choose.random() < 0.5 else _dense

    def next(self) -> torch.Tensor:
        """One more tensor; sometimes an odd one."""
        odd = self._choose.random() < 0.25
        shape = self._choose.choice(_SHAPES) if odd else self._shape
        dtype = self._choose.choice(_DTYPES) if self._choose.random() < 0.15 else self._dtype
        form = _dense if self._choose.random() < 0.2 else self._form
        tensor = torch.rand(shape).mul(3).to(dtype)
        try:
            return form(tensor)
        except Exception:  # this tensor has no such form
            return tensor


def _dense(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def _per_channel(tensor: torch.Tensor) -> torch.Tensor:
    count = tensor.size(0)
    return torch.quantize_per_channel(tensor, torch.full((count,), 0.1), torch.zeros(count), 0, torch.qint8)


_QUANTIZED: list[Form] = [
    lambda t: torch.quantize_per_tensor(t.float(), 0.1, 3, torch.quint8),
    lambda t: torch.quantize_per_tensor(t.float(), 0.1, 0, torch.qint8),
    _per_channel,
]
_FORMS: list[Form] = [
    *_QUANTIZED,
    lambda t: t.to_sparse(),
    lambda t: t.to_sparse_csr(),
    lambda t: t.to_sparse_bsr((2, 2)),
    lambda t: t.float().to_mkldnn(),
    lambda t: torch.nested.nested_tensor([t, t]),
    lambda t: t.to(torch.complex64).conj(),
    lambda t: torch._neg_view(t),
    lambda t: t.transpose(0, -1),
    lambda t: t.contiguous(memory_format=torch.channels_last),
]


def packed_parameters() -> dict[str, list[Any]]:
    """Weights packed for quantised kernels, by TorchScript class name (made once)."""
    if not _packed:
        _packed.update(_pack())
    return _packed


_packed: dict[str, list[Any]] = {}


def _pack() -> dict[str, list[Any]]:
    ops, classes = torch.ops.quantized, "__torch__.torch.classes"
    weight = {n: torch.quantize_per_tensor(torch.rand(4, 4, *[3] * n), 0.1, 0, torch.qint8) for n in range(4)}
    one = {n: [1] * n for n in range(4)}
    zero = {n: [0] * n for n in range(4)}
    convolutions = {
        2: [
            ops.conv1d_prepack(weight[1], None, one[1], zero[1], one[1], 1),
            ops.conv2d_prepack(weight[2], None, one[2], one[2], one[2], 1),
            ops.conv_transpose1d_prepack(weight[1], None, one[1], zero[1], zero[1], one[1], 1),
            ops.conv_transpose2d_prepack(weight[2], None, one[2], zero[2], zero[2], one[2], 1),
        ],
        3: [
            ops.conv3d_prepack(weight[3], None, one[3], one[3], one[3], 1),
            ops.conv_transpose3d_prepack(weight[3], None, one[3], zero[3], zero[3], one[3], 1),
        ],
    }
    linear = [ops.linear_prepack(weight[0], torch.rand(4)), ops.linear_prepack_fp16(torch.rand(4, 4), None)]
    cells = [ops.make_quantized_cell_params_dynamic(linear[0], linear[0], torch.rand(4), torch.rand(4), True)]
    rows = torch.quantize_per_channel(torch.rand(8, 4), torch.full((8,), 0.1), torch.zeros(8), 0, torch.quint8)
    return {
        f"{classes}.quantized.Conv2dPackedParamsBase": convolutions[2],
        f"{classes}.quantized.Conv3dPackedParamsBase": convolutions[3],
        f"{classes}.quantized.LinearPackedParamsBase": linear,
        f"{classes}.quantized.EmbeddingPackedParamsBase": [ops.embedding_bag_prepack(rows)],
        f"{classes}.rnn.CellParamsBase": cells,
    }
