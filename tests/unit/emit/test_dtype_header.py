"""The header of the dtypes, as a compiler reads it."""

import shutil
import subprocess
from pathlib import Path

import pytest

from opsieve.dtypes import KernelDtypes
from opsieve.emit.dtype_header import dtype_header

_SCALAR_TYPE = "namespace at { enum class ScalarType { Byte, Int, Long, Float, Double, Bool }; }\n"


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_a_compiler_finds_exactly_the_dtypes_that_are_kept(tmp_path: Path) -> None:
    header = dtype_header(KernelDtypes.of(["float"], {"add_cpu": ["long", "float"], 'odd"tag': ["bool"], "none": []}))
    (tmp_path / "c10/core").mkdir(parents=True)
    (tmp_path / "c10/core/ScalarType.h").write_text(_SCALAR_TYPE)
    cases = {
        ("anything", "Float"): True,
        ("anything", "Long"): False,
        ("add_cpu", "Long"): True,
        ("add_cpu", "Int"): False,
        ("add_cpu2", "Long"): False,
        ("add", "Long"): False,
        ('odd\\"tag', "Bool"): True,
        ("none", "Bool"): False,
    }
    checks = [
        f'static_assert(at::should_include_kernel_dtype("{tag}", at::ScalarType::{name}) == {str(kept).lower()}, "");'
        for (tag, name), kept in cases.items()
    ]
    source = "\n".join((header, *checks))
    subprocess.run(
        ["g++", "-std=c++14", "-fsyntax-only", "-I", str(tmp_path), "-x", "c++", "-"],
        input=source,
        text=True,
        check=True,
    )


def test_the_same_dtypes_give_the_same_text() -> None:
    assert dtype_header(KernelDtypes.of(["int", "float"])) == dtype_header(KernelDtypes.of(["float32", "Int"]))
