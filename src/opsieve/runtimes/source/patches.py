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


PATCHES = (
    Patch(
        "aten/src/ATen/ParallelCommon.cpp",
        'TORCH_CHECK(false, "Undefined intraop_default_num_threads on mobile.");',
        'const auto chosen = get_env_num_threads("OMP_NUM_THREADS", 0); '
        "return static_cast<int>(chosen ? chosen : TaskThreadPoolBase::defaultNumThreads());",
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
