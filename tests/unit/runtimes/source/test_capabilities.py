"""What a runtime says it can load, from its tree, its options and what was linked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.dtypes import KernelDtypes
from opsieve.emit.dtype_header import dtype_header
from opsieve.errors import InvalidFile
from opsieve.runtimes.source.capabilities import (
    Capabilities,
    capabilities_from_json,
    capabilities_of,
    capabilities_to_json,
)
from opsieve.runtimes.source.wanted import Policy
from opsieve.runtimes.source.workspace import Workspace

from .small_workspace import needs_compiler, small_workspace

pytestmark = [needs_compiler, pytest.mark.usefixtures("cache")]

VERSIONS = """\
// kMaxSupportedBytecodeVersion = 99
constexpr uint64_t kMinSupportedFileFormatVersion = 0x1L;
constexpr uint64_t kMaxSupportedFileFormatVersion = 0xAL;
constexpr uint64_t kMinSupportedBytecodeVersion = 0x4L;
constexpr uint64_t kMaxSupportedBytecodeVersion =
    9;
"""
SOURCES = {
    "app/rnn.cpp": 'auto r = torch::selective_class_<P>("rnn", TORCH_SELECTIVE_CLASS("CellParamsBase"));\n',
    "app/conv.cpp": 'm = class_<T>("quantized", "Conv" + std::to_string(n) + "dPackedParamsBase");\n',
    "app/other.cpp": 'auto word = "OtherBase";\n',
    "app/xnn.cpp": 'm.class_<C>("LinearOpContext");\n',
}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = small_workspace(tmp_path, SOURCES)
    (made.tree.root / "caffe2/serialize/versions.h").write_text(VERSIONS)
    return made


def test_versions_are_the_trees(workspace: Workspace) -> None:
    found = capabilities_of(workspace, Policy.STATIC, ())
    assert (found.bytecode, found.file_format, found.dtypes) == ((4, 9), (1, 10), None)
    (workspace.tree.root / "caffe2/serialize/versions.h").unlink()
    assert capabilities_of(workspace, Policy.STATIC, ()).bytecode is None


def test_dtypes_are_those_of_any_kernel(workspace: Workspace) -> None:
    header = dtype_header(KernelDtypes.of(["float"], {"add_cpu": ["long"]}))
    other = replace(workspace, options=replace(workspace.options, dtype_header=header))
    assert capabilities_of(other, Policy.STATIC, ()).dtypes == ("Float", "Long")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CellParamsBase", True),
        ("Conv2dPackedParamsBase", True),
        ("OtherBase", False),
        ("LinearOpContext", False),
    ],
)
def test_classes_are_those_of_linked_sources(workspace: Workspace, name: str, expected: bool) -> None:
    linked = ("app/rnn.cpp", "app/conv.cpp", "app/other.cpp", "not/a/source.cpp")
    assert capabilities_of(workspace, Policy.STATIC, linked).may_have_class(name) is expected


def test_what_is_written_is_read(workspace: Workspace, tmp_path: Path) -> None:
    capabilities = capabilities_of(workspace, Policy.TRACED, SOURCES)
    (tmp_path / "c.json").write_bytes(capabilities_to_json(capabilities))
    assert capabilities_from_json(tmp_path / "c.json") == capabilities


@pytest.mark.parametrize("text", ["", "{}", "[" * 100_000, '{"schema": 1}', None])
def test_anything_else_is_refused(workspace: Workspace, tmp_path: Path, text: str | None) -> None:
    good = capabilities_to_json(capabilities_of(workspace, Policy.STATIC, ())).decode()
    (tmp_path / "c.json").write_text(good.replace("capabilities-1", "capabilities-9") if text is None else text)
    with pytest.raises(InvalidFile):
        capabilities_from_json(tmp_path / "c.json")
    assert isinstance(capabilities_of(workspace, Policy.STATIC, ()), Capabilities)
