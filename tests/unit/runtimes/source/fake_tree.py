"""A folder that looks like PyTorch's source tree: the files that are looked at, hardly anything in them."""

from __future__ import annotations

from pathlib import Path

BUILD_LISTS = """\
load_nothing = 1
jit_core_headers = ["torch/csrc/jit/frontend/lexer.h"]
jit_core_sources = ["torch/csrc/jit/frontend/lexer.cpp"]
core_sources_common = ["torch/csrc/jit/mobile/import.cpp", "torch/csrc/jit/mobile/gone.cpp"]
libtorch_lite_cmake_sources = sorted(core_sources_common + ["torch/csrc/autograd/edge.cpp"])
libtorch_cmake_sources = core_sources_common + ["torch/csrc/jit/ir/ir.cpp"]
aten_cpu_source_non_codegen_list = ["aten/src/ATen/Context.cpp"]
aten_native_source_non_codegen_list = ["aten/src/ATen/native/Copy.cpp", "aten/src/ATen/native/Copy.h"]
aten_native_source_codegen_list = ["aten/src/ATen/native/cpu/CopyKernel.cpp"]
"""

FILES = (
    "aten/src/ATen/ConjugateFallback.cpp",
    "aten/src/ATen/Context.cpp",
    "aten/src/ATen/core/List.cpp",
    "aten/src/ATen/core/boxing/KernelFunction_test.cpp",
    "aten/src/ATen/native/Copy.cpp",
    "aten/src/ATen/native/Copy.h",
    "aten/src/ATen/native/cpu/CopyKernel.cpp",
    "aten/src/ATen/native/cpu/SumKernel.cpp",
    "aten/src/ATen/native/native_functions.yaml",
    "c10/benchmark/b.cpp",
    "c10/core/Device.cpp",
    "c10/core/TensorImpl.h",
    "c10/cuda/CUDAStream.cpp",
    "c10/test/core/Device_test.cpp",
    "caffe2/serialize/crc.cc",
    "caffe2/serialize/inline_container_test.cc",
    "third_party/miniz-9.9/miniz.c",
    "torch/csrc/autograd/edge.cpp",
    "torch/csrc/jit/frontend/lexer.cpp",
    "torch/csrc/jit/frontend/lexer.h",
    "torch/csrc/jit/ir/ir.cpp",
    "torch/csrc/jit/mobile/import.cpp",
    "torchgen/gen.py",
)


def fake_tree(root: Path, *, version: str = "2.6.0a0\n", lists: str = BUILD_LISTS) -> Path:
    """Write the tree into the new folder `root`, and return it."""
    for name in FILES:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"contents of {name}\n")
    (root / "version.txt").write_text(version)
    (root / "build_variables.bzl").write_text(lists)
    return root


def write_schema(root: Path, version: str = "") -> None:
    """Write the schema of flatbuffer models and the header that `flatc` made of it; since 22 it tells its version."""
    folder = root / "torch/csrc/jit/serialization"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mobile_bytecode.fbs").write_text('file_identifier "PTMF";\n')
    names = ("MAJOR", "MINOR", "REVISION")
    told = " &&\n".join(
        f"FLATBUFFERS_VERSION_{name} == {n}" for name, n in zip(names, version.split("."), strict=False)
    )
    text = f'#include "flatbuffers/flatbuffers.h"\nstatic_assert({told}, "");\n' if version else "int made_before_22;\n"
    (folder / "mobile_bytecode_generated.h").write_text(text)
