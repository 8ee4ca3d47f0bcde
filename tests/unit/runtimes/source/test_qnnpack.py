"""QNNPACK's sources by processor, and who is told of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source.libraries import libraries
from opsieve.runtimes.source.objects.compiler import Compiler
from opsieve.runtimes.source.options import BuildOptions, QuantizedEngine, Threads
from opsieve.runtimes.source.qnnpack import (
    FOLDER,
    engine_sources,
    families,
    header_files,
    is_qnnpack,
    qnnpack_flags,
    qnnpack_sources,
)
from opsieve.runtimes.source.tree import SourceTree

from .fake_tools import program
from .fake_tree import fake_tree
from .small_workspace import needs_compiler, small_workspace

X86 = frozenset({"x86"})
ARM = frozenset({"arm", "arm64"})
LISTS = """
set(PYTORCH_QNNPACK_INIT_SRCS
  src/init.c
  src/conv-prepack.cc)
set(PYTORCH_QNNPACK_SCALAR_UKERNELS src/u8lut/scalar.c)
set(PYTORCH_QNNPACK_ARM_NEON_UKERNELS src/q8gemm/8x8-neon.c)
set(PYTORCH_QNNPACK_AARCH32_ASM_UKERNELS src/q8gemm/4x8-aarch32.S)
set(PYTORCH_QNNPACK_AARCH64_ASM_UKERNELS src/q8gemm/8x8-aarch64.S)
set(PYTORCH_QNNPACK_X86_SSE2_UKERNELS src/q8gemm/4x4-sse2.c src/q8gemm/gone.c)
set(PYTORCH_QNNPACK_UKERNELS ${PYTORCH_QNNPACK_SCALAR_UKERNELS})
"""
FILES = (
    "src/init.c",
    "src/conv-prepack.cc",
    "src/u8lut/scalar.c",
    "src/q8gemm/8x8-neon.c",
    "src/q8gemm/4x8-aarch32.S",
    "src/q8gemm/8x8-aarch64.S",
    "src/q8gemm/4x4-sse2.c",
    "src/not-listed.c",
    "deps/clog/src/clog.c",
)


def write(root: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return write(tmp_path, {f"{FOLDER}/{name}": "" for name in FILES} | {f"{FOLDER}/CMakeLists.txt": LISTS})


def names(root: Path, wanted: frozenset[str]) -> list[str]:
    return sorted(name.removeprefix(f"{FOLDER}/") for name in qnnpack_sources(root, wanted))


def test_every_processor_has_its_own_kernels(tree: Path) -> None:
    common = ["deps/clog/src/clog.c", "src/conv-prepack.cc", "src/init.c"]
    assert names(tree, X86) == [*common, "src/q8gemm/4x4-sse2.c", "src/u8lut/scalar.c"]
    assert names(tree, ARM) == [*common, "src/q8gemm/8x8-aarch64.S", "src/q8gemm/8x8-neon.c", "src/u8lut/scalar.c"]
    arm32 = frozenset({"arm", "arm32"})
    assert names(tree, arm32) == [*common, "src/q8gemm/4x8-aarch32.S", "src/q8gemm/8x8-neon.c", "src/u8lut/scalar.c"]


def test_only_kernels_are_compiled_for_more_than_the_target(tree: Path) -> None:
    flags = {name.removeprefix(f"{FOLDER}/"): qnnpack_flags(name, X86) for name in qnnpack_sources(tree, X86)}
    assert [name for name, given in flags.items() if "-msse2" in given] == [
        "src/u8lut/scalar.c",
        "src/q8gemm/4x4-sse2.c",
    ]
    assert all("-DPYTORCH_QNNPACK_RUNTIME_QUANTIZATION=1" in given for given in flags.values())


@pytest.mark.parametrize("text", ["", "set(PYTORCH_QNNPACK_INIT_SRCS ${OTHER})", "set(PYTORCH_QNNPACK_INIT_SRCS /a.c)"])
def test_lists_that_name_nothing_or_lead_elsewhere_are_refused(tree: Path, text: str) -> None:
    (tree / FOLDER / "CMakeLists.txt").write_text(text)
    with pytest.raises(InvalidSourceTree):
        qnnpack_sources(tree, X86)


def test_a_tree_without_it_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(InvalidSourceTree, match="QNNPACK") as caught:
        qnnpack_sources(tmp_path, X86)
    assert "--quantized-engine none" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("machine", "found"),
    [
        ("x86_64-linux-gnu", X86),
        ("i686-pc-linux-gnu", X86),
        ("aarch64-linux-gnu", ARM),
        ("arm64-apple-darwin", ARM),
        ("arm-linux-gnueabihf", frozenset({"arm", "arm32"})),
        ("armv7a-linux-androideabi", frozenset({"arm", "arm32"})),
    ],
)
def test_the_compiler_tells_the_processor(tmp_path: Path, machine: str, found: frozenset[str]) -> None:
    assert families(Compiler(program(tmp_path, "g++", f"#!/bin/sh\necho {machine}\n"), "")) == found


def test_other_processors_have_no_engine(tmp_path: Path) -> None:
    with pytest.raises(InvalidSourceTree, match="riscv64"):
        families(Compiler(program(tmp_path, "g++", "#!/bin/sh\necho riscv64-linux-gnu\n"), ""))


def test_those_are_told_that_mention_it_or_see_a_header_that_does(tmp_path: Path) -> None:
    sources = {
        "a.cpp": "#ifdef USE_PYTORCH_QNNPACK\n#endif",
        "b.cpp": "#include <ATen/native/far.h>",
        "c.cpp": "#include <ATen/native/other.h>",
        "d.cpp": '#include "ATen/native/utils.h"',
        f"{FOLDER}/src/init.c": "USE_PTHREADPOOL",
    }
    headers = {
        "aten/src/ATen/native/utils.h": "#if defined(USE_PTHREADPOOL)\n#endif",
        "aten/src/ATen/native/near.h": "#include <ATen/native/utils.h>",
        "aten/src/ATen/native/far.h": '#include "../native/near.h"',
        "aten/src/ATen/native/other.h": "int x;",
    }
    root = write(tmp_path, sources | headers)
    told = engine_sources({name: root / name for name in sources}, header_files(root, ["aten/src/ATen"]))
    assert told == {"a.cpp", "b.cpp", "d.cpp"}


def test_the_engine_brings_its_library_once() -> None:
    engine = BuildOptions(quantized_engine=QuantizedEngine.QNNPACK)
    assert "-lpthreadpool" not in libraries(BuildOptions())
    assert libraries(engine).count("-lpthreadpool") == 1
    assert libraries(replace(engine, threads=Threads.NATIVE)).count("-lpthreadpool") == 1


def test_the_engine_changes_no_flag_of_files_that_do_not_ask_for_it() -> None:
    engine = BuildOptions(quantized_engine=QuantizedEngine.QNNPACK)
    assert engine.flags("17", is_kernel=False) == BuildOptions().flags("17", is_kernel=False)
    assert "USE_PYTORCH_QNNPACK" in engine.definitions
    assert "USE_PYTORCH_QNNPACK" not in BuildOptions().definitions


def test_the_pool_of_threads_is_asked_for_where_it_is_used() -> None:
    assert BuildOptions(threads=Threads.NATIVE).engine_flags == ("-DUSE_PTHREADPOOL",)
    assert BuildOptions(threads=Threads.OPENMP).engine_flags == ()


@needs_compiler
def test_a_workspace_tells_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPSIEVE_CACHE", str(tmp_path / "cache"))
    library = f"{FOLDER}/src/q8gemm/4x4-sse2.c"
    plain = small_workspace(tmp_path, {"told.cpp": "", "other.cpp": "", library: ""})
    options = replace(plain.options, quantized_engine=QuantizedEngine.QNNPACK)
    engine = replace(plain, options=options, engine_sources=frozenset({"told.cpp"}), families=X86)
    assert engine.job("other.cpp") == plain.job("other.cpp")
    assert set(options.engine_flags) < set(engine.job("told.cpp").flags)
    assert "-msse2" in engine.job(library).flags
    assert is_qnnpack(library)
    for name in ("told.cpp", library):
        assert plain.tree.root / FOLDER / "include" in engine.job(name).include


def test_its_lists_and_assembler_belong_to_what_a_build_reads(tmp_path: Path) -> None:
    tree = fake_tree(tmp_path)
    write(tree, {f"{FOLDER}/CMakeLists.txt": LISTS, f"{FOLDER}/src/q8gemm/8x8-aarch64.S": "code"})
    read = set(SourceTree.open(tree).read_by_builds())
    assert {f"{FOLDER}/CMakeLists.txt", f"{FOLDER}/src/q8gemm/8x8-aarch64.S"} <= read
