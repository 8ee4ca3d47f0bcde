from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from opsieve.graph.dependencies import find_dependencies
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import parse_scopes
from tests.functional.cli.conftest import Result, fits
from tests.unit.native import Compiler, fake_torch

pytestmark = pytest.mark.torch
Opsieve = Callable[..., Result]


def test_the_summary_fits_the_terminal_and_tells_what_was_found(opsieve: Opsieve, cached_graph: OpGraph) -> None:
    result = opsieve("graph")
    assert result.status == 0
    assert result.err == ""
    assert fits(result.out)
    for fact in (cached_graph.build_id, str(len(cached_graph.operators)), "CompositeExplicitAutogradNonFunctional"):
        assert fact in result.out


def test_the_summary_as_json(opsieve: Opsieve, cached_graph: OpGraph) -> None:
    found = opsieve("graph", "--scope", "sparse", "--format", "json").json
    needs = find_dependencies(cached_graph, parse_scopes(("sparse",)))
    assert found["build_id"] == cached_graph.build_id
    assert found["operators"] == len(cached_graph.operators)
    assert found["dependencies"] == int(needs.needs.sum())
    assert found["scopes"] == ["inference", "sparse"]
    assert found["registrations"]["CPU"] == sum("CPU" in keys for keys in cached_graph.registrations.values())


def test_all_operators_are_listed(opsieve: Opsieve, cached_graph: OpGraph) -> None:
    assert opsieve("graph", "--operators").out.splitlines() == list(cached_graph.operators)
    assert opsieve("graph", "--operators", "--format", "json").json == list(cached_graph.operators)


def test_what_one_operator_needs(opsieve: Opsieve, cached_graph: OpGraph) -> None:
    needs = find_dependencies(cached_graph, parse_scopes(()))
    result = opsieve("graph", "--needs", "aten::linear")
    assert result.status == 0
    assert fits(result.out)
    listed = [line.strip() for line in result.out.splitlines() if line.startswith("  ")]
    assert listed == sorted(needs.direct("aten::linear"))
    assert f"{len(needs.closure(['aten::linear']))} operators stay for it." in result.out
    assert opsieve("graph", "--needs", "aten::linear", "--format", "json").json == {
        "operator": "aten::linear",
        "direct": sorted(needs.direct("aten::linear")),
        "always": sorted(needs.always),
        "closure": sorted(needs.closure(["aten::linear"])),
    }


def test_default_is_another_spelling_of_no_overload(opsieve: Opsieve) -> None:
    plain, default = (opsieve("graph", "--needs", name) for name in ("aten::relu", "aten::relu.default"))
    assert plain.out == default.out


@pytest.mark.parametrize(
    ("operator", "message"),
    [("aten::lineer", "no operator aten::lineer"), ("linear", "'linear' is not an operator name")],
)
def test_an_operator_that_is_none(opsieve: Opsieve, operator: str, message: str) -> None:
    assert opsieve("graph", "--needs", operator).fails(message)


def test_the_dependencies_of_all_operators(opsieve: Opsieve, cached_graph: OpGraph) -> None:
    needs = find_dependencies(cached_graph, parse_scopes(()))
    found = yaml.load(opsieve("graph", "--format", "yaml").out, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    assert {entry["name"]: {dep["name"] for dep in entry.get("depends", ())} for entry in found} == {
        name: needs.direct(name) for name in cached_graph.operators
    }
    dot = opsieve("graph", "--format", "dot").out
    assert dot.count(" -> ") == int(needs.needs.sum())


def test_the_installed_pytorch_agrees(opsieve: Opsieve) -> None:
    result = opsieve("graph", "--truth", "--format", "json")
    assert result.status == 0
    differences = {entry["key"]: entry for entry in result.json}
    assert differences["CPU"]["found"] == differences["CPU"]["expected"] > 1000
    assert not any(d["spurious"] or d["missing"] for key, d in differences.items() if key != "Interpreter")


def test_a_disagreement_is_a_finding(opsieve: Opsieve, cached_graph: OpGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    from dataclasses import replace

    registrations = tuple(r for r in cached_graph.all_registrations if (r.operator, r.key) != ("aten::mm", "CPU"))
    monkeypatch.setattr(
        "opsieve.graph.load.cached_op_graph", lambda *_, **__: replace(cached_graph, all_registrations=registrations)
    )
    result = opsieve("graph", "--truth")
    assert result.status == 1
    assert fits(result.out)
    (line,) = (line for line in result.out.splitlines() if line.startswith("CPU "))
    assert line.split()[-2:] == ["1", "0"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A folder like that of PyTorch's package, for libraries that are not PyTorch's."""
    (tmp_path / "torch" / "lib").mkdir(parents=True)
    (tmp_path / "torch" / "version.py").write_text("__version__ = '2.13.0+cpu'\n")
    return tmp_path / "torch"


def test_any_library_with_operators_can_be_read(opsieve: Opsieve, package: Path, compiler: Compiler) -> None:
    library = package / "lib" / "libfake.so"
    shutil.copy(fake_torch(compiler).path, library)
    result = opsieve("graph", library, "--operators")
    assert result.status == 0
    assert "custom::entry" in result.out.splitlines()


def _not_elf(library: Path, compiler: Compiler) -> None:
    library.write_bytes(b"#!/bin/sh\nexit 0\n" * 40)


def _empty(library: Path, compiler: Compiler) -> None:
    library.write_bytes(b"")


def _other_processor(library: Path, compiler: Compiler) -> None:
    raw = bytearray(fake_torch(compiler).path.read_bytes())
    raw[18] = 183
    library.write_bytes(raw)


def _stripped(library: Path, compiler: Compiler) -> None:
    subprocess.run(["strip", "--strip-all", fake_torch(compiler).path, "-o", library], check=True)


def _no_build_id(library: Path, compiler: Compiler) -> None:
    source = fake_torch(compiler).path
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", source, library], check=True)


def _truncated(library: Path, compiler: Compiler) -> None:
    library.write_bytes(fake_torch(compiler).path.read_bytes()[:-500])


def _no_operators(library: Path, compiler: Compiler) -> None:
    shutil.copy(compiler.library('const char* f() { return "text"; }'), library)


@pytest.mark.parametrize(
    ("make", "parts"),
    [
        (_not_elf, ("no ELF file", "expected: a shared library")),
        (_empty, ("cannot read the file",)),
        (_other_processor, ("another processor (ELF machine 183)", "expected: x86-64")),
        (_stripped, ("no symbol table", "try: install the original wheel again")),
        (_no_build_id, ("no build id",)),
        (_truncated, ("does not lie in the file",)),
        (_no_operators, ("no operator registrations",)),
        (lambda library, compiler: None, ("no such library",)),
    ],
    ids=["not ELF", "empty", "aarch64", "stripped", "no build id", "truncated", "no operators", "missing"],
)
def test_a_library_that_cannot_be_analysed_is_refused(
    opsieve: Opsieve,
    package: Path,
    compiler: Compiler,
    make: Callable[[Path, Compiler], None],
    parts: tuple[str, ...],
) -> None:
    library = package / "lib" / "libtorch_cpu.so"
    make(library, compiler)
    result = opsieve("graph", library)
    assert result.out == ""
    assert result.fails(str(library), *parts)


def test_a_library_outside_a_package_is_refused(opsieve: Opsieve, compiler: Compiler) -> None:
    assert opsieve("graph", fake_torch(compiler).path).fails("not part of a PyTorch package", "torch/lib")


def test_wrong_usage(opsieve: Opsieve, tmp_path: Path) -> None:
    assert opsieve("graph", "--scope", "everything").fails("'everything' is not one of", "inference")
    assert opsieve("graph", "--python", tmp_path / "no-python").fails("no Python interpreter")
    assert opsieve("graph", "--format", "xml").fails("'xml' is not one of")


def test_the_installed_command_does_the_same(cached_graph: OpGraph) -> None:
    """As a process: status, streams, and no colour codes when nobody looks."""
    script = Path(sys.executable).with_name("opsieve")
    done = subprocess.run([script, "graph", "--needs", "aten::relu"], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("aten::relu may dispatch to")
    assert "\x1b" not in done.stdout
    done = subprocess.run([script, "graph", "--needs", "x"], capture_output=True, text=True, env=os.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: 'x' is not an operator name\nexpected: ")
