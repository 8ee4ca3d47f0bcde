"""The few places where PyTorch's source does not do for a program on Linux what it does for an app on a phone."""

from __future__ import annotations

from dataclasses import dataclass

from opsieve.runtimes.source.explaining import explaining


@dataclass(frozen=True, slots=True)
class Patch:
    """A text to replace in one file; nothing happens in a version that does not have it."""

    file: str
    old: str
    new: str
    reason: str


def _on_demand(file: str, variable: str, call: str) -> Patch:
    return Patch(
        file,
        f"auto {variable} = {call};",
        f"auto {variable} = 0;",
        "A class of packed weights, and all that packs and runs these, would stay whenever the file is linked. The "
        "schemas that name the class register it.",
    )


_QUANTIZED = "aten/src/ATen/native/quantized/cpu/fbgemm_utils.cpp"
_SPARSE = "aten/src/ATen/native/ao_sparse/quantized/cpu/fbgemm_utils.cpp"

PATCHES = (
    _on_demand(_QUANTIZED, "conv2d_params", "register_conv_params<2>()"),
    _on_demand(_QUANTIZED, "conv3d_params", "register_conv_params<3>()"),
    _on_demand(_QUANTIZED, "linear_params", "register_linear_params()"),
    _on_demand(_QUANTIZED, "embedding_params", "register_embedding_params()"),
    _on_demand(_SPARSE, "linear_params", "register_linear_params()"),
    Patch(
        "aten/src/ATen/ParallelCommon.cpp",
        'TORCH_CHECK(false, "Undefined intraop_default_num_threads on mobile.");',
        'const char* const chosen = std::getenv("OMP_NUM_THREADS"); const int count = chosen ? std::atoi(chosen) : 0; '
        "return count > 0 ? count : static_cast<int>(TaskThreadPoolBase::defaultNumThreads());",
        "With C10_MOBILE and OpenMP every first parallel loop would raise this. On other systems than phones PyTorch "
        "takes the variable, then the number of processors.",
    ),
)


def patched(name: str, text: str) -> str:
    """The text of a source with what has to be different: here, and for its messages to be explained."""
    for patch in PATCHES:
        if patch.file == name:
            text = text.replace(patch.old, patch.new)
    return explaining(name, text)
