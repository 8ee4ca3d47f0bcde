"""What no run needs: the rules that leave files of the PyTorch package out, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class DropRule:
    """Files that are left out, as glob patterns over paths from site-packages (`*` also crosses `/`)."""

    patterns: tuple[str, ...]
    reason: str
    only_for_building: bool = False
    """True for files that compiling C++ against PyTorch needs: `with_headers` keeps them."""

    def matches(self, path: str) -> bool:
        """Whether the rule leaves `path` out."""
        return any(fnmatchcase(path, pattern) for pattern in self.patterns)


# What is deliberately not here:
# - torch/bin/torch_shm_manager: started by libshm for the file_system sharing strategy of torch.multiprocessing,
#   and `import torch` fails when it is missing;
# - torch/testing: torch.utils.checkpoint, torch._refs, torch.library and FSDP import parts of it;
# - torchgen: torch.library and torch._library parse schemas with it;
# - torch/_dynamo, torch/_inductor: torch.export and many decorators import them.
# Names are spelled as narrowly as the folders allow, so that a file nobody has thought of stays.
DROP_RULES: tuple[DropRule, ...] = (
    DropRule(("torch/test/*",), "C++ test programs of PyTorch itself"),
    DropRule(
        ("torch/bin/test_*", "torch/bin/*Test", "torch/bin/upgrader_models/*", "torch/bin/*.ptl"),
        "C++ test programs of PyTorch itself, and their data",
    ),
    DropRule(("torch/bin/protoc*",), "the protobuf compiler, used only to build PyTorch"),
    DropRule(
        (
            "torch/lib/libtorchbind_test.so",
            "torch/lib/libjitbackend_test.so",
            "torch/lib/libbackend_with_compiler.so",
            "torch/lib/libaoti_custom_ops.so",
        ),
        "library that only PyTorch's own tests load",
    ),
    DropRule(
        ("torch/include/*", "torch/lib/libshm/*.h", "torch/lib/libshm_windows/*.h"),
        "C++ headers: needed to compile against PyTorch (and by torch.compile); kept with --with-headers",
        only_for_building=True,
    ),
    DropRule(
        ("torch/share/cmake/*", "torch/lib/*.a", "torch/lib/*.lib"),
        "build files and static archives: needed to link against PyTorch; kept with --with-headers",
        only_for_building=True,
    ),
    DropRule(("*.pyi", "torch/py.typed"), "type stubs: read by type checkers only, never at run time"),
)


@dataclass(frozen=True, slots=True, order=True)
class DroppedFile:
    """A file of the installed package that the slim one does not have."""

    path: str
    """From site-packages, with `/`."""

    size: int
    """Bytes."""

    reason: str


def drop_reason(path: str, *, with_headers: bool = False) -> str | None:
    """Why `path` (from site-packages) is left out, or None when it stays."""
    for rule in DROP_RULES:
        if rule.matches(path) and not (with_headers and rule.only_for_building):
            return rule.reason
    return None
