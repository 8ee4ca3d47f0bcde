"""Operators that stay in every runtime, because PyTorch itself calls them for what every program does.

Found by recording what each activity dispatches; tests/functional/runtimes/test_framework.py repeats the activities on
a slim runtime without any model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opsieve.operators import OperatorName

_FRAMEWORK: Mapping[str, tuple[str, ...]] = {
    "loading tensors and models": (
        "set_.source_Storage",
        "set_.source_Storage_storage_offset",
        "empty.memory_format",
        "detach",
        "requires_grad_",
        "view.dtype",
    ),
    "making tensors": (
        "empty_strided",
        "fill_.Scalar",
        "fill_.Tensor",
        "zero_",
        "zeros",
        "ones",
        "full",
        "lift_fresh",
        "detach_",
        "scalar_tensor",
    ),
    "copying and converting": (
        "copy_",
        "clone",
        "_to_copy",
        "to.device",
        "to.dtype",
        "to.dtype_layout",
        "to.other",
        "new_empty",
        "contiguous",
        "resize_",
        "as_strided",
        "item",
        "_local_scalar_dense",
        "is_nonzero",
        "resolve_conj",
        "resolve_neg",
        "_has_compatible_shallow_copy_type",
    ),
    "indexing from Python": ("select.int", "slice.Tensor", "unsqueeze", "unbind.int", "alias", "index.Tensor"),
    "comparing tensors": ("equal", "eq.Tensor", "is_same_size"),
    "printing tensors": (
        "__and__.Tensor",
        "abs",
        "bitwise_and.Tensor",
        "cat",
        "ceil",
        "div.Tensor",
        "eq.Tensor",
        "gt.Scalar",
        "isfinite",
        "lt.Scalar",
        "masked_select",
        "max",
        "min",
        "mul.Tensor",
        "ne.Scalar",
        "ne.Tensor",
        "reshape",
        "sum",
        "view",
    ),
}

_EXECUTOR: tuple[str, ...] = (
    "add.Tensor",
    "add_.Tensor",
    "bmm",
    "cat",
    "chunk",
    "matmul",
    "mm",
    "mul.Tensor",
    "sub.Tensor",
    "t",
)
"""What the TorchScript executor's passes put in place of other operators (DecomposeOps, BatchMM, CanonicalizeOps,
RemoveListMutation in torch/csrc/jit/passes): addmm becomes mm and add, rsub becomes sub, several mm become one."""


def framework_operators() -> Iterator[tuple[OperatorName, str]]:
    """Each operator with the reason why it always stays; an operator may come with several reasons."""
    for reason, names in _FRAMEWORK.items():
        for name in names:
            yield OperatorName.parse(f"aten::{name}"), reason


def executor_operators() -> Iterator[tuple[OperatorName, str]]:
    """What running TorchScript adds."""
    for name in _EXECUTOR:
        yield OperatorName.parse(f"aten::{name}"), "rewriting by the TorchScript executor"
