"""Which libraries are loaded, and that a version nobody tested is compared with its own word first."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import GroundTruthMismatch, MissingInstallation, UnsupportedLibrary
from opsieve.graph import load
from opsieve.graph.dispatcher_dump import Kind, Registration, Source
from opsieve.graph.load import LIBRARY, TESTED_VERSION, library_install, load_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.symbols import CATCH_ALL, INTERPRETER
from opsieve.graph.truth import Truth
from opsieve.installed import TorchInstall, install_at
from tests.unit.native import Compiler, fake_torch, op_graph_of

FILE = "separate.cpp"


@pytest.fixture(scope="module")
def graph(compiler: Compiler) -> OpGraph:
    return op_graph_of(fake_torch(compiler))


@pytest.fixture
def package(tmp_path: Path, compiler: Compiler) -> Path:
    folder = tmp_path / "torch"
    (folder / "lib").mkdir(parents=True)
    (folder / "version.py").write_text("__version__ = '2.99.0+cpu'\n")
    shutil.copy(fake_torch(compiler).path, folder / "lib" / LIBRARY)
    return folder


@pytest.fixture
def install(package: Path) -> TorchInstall:
    return install_at(package)


@pytest.fixture
def asked(graph: OpGraph, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, truth: Truth) -> list[TorchInstall]:
    """The installations that were asked for the truth. The graph comes from the analysis of the small library."""
    found: list[TorchInstall] = []

    def read_truth(install: TorchInstall) -> Truth:
        found.append(install)
        return truth

    monkeypatch.setenv("OPSIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(load, "cached_op_graph", lambda *_, **__: graph)
    monkeypatch.setattr(load, "read_truth", read_truth)
    return found


@pytest.fixture
def truth(graph: OpGraph) -> Truth:
    """What a PyTorch would say that has just what the library has."""
    registrations = {
        Registration(
            operator="" if operator == "_::*" else operator,
            key="CompositeImplicitAutograd" if key == CATCH_ALL else key,
            kind=Kind.KERNEL if kernels else Kind.FALLTHROUGH,
            source=Source.CPP,
            file=FILE,
            line=1,
            active=True,
        )
        for operator, by_key in graph.registrations.items()
        for key, kernels in by_key.items()
        if key != INTERPRETER
    }
    return Truth(
        version="2.99.0+cpu",
        operators={},
        registrations=frozenset(r for r in registrations if r.operator),
        computed={},
        fallbacks={r.key: r for r in registrations if not r.operator},
        interpreter_only=frozenset(),
    )


def test_a_version_that_was_tested_is_not_asked(
    install: TorchInstall, graph: OpGraph, asked: list[TorchInstall]
) -> None:
    assert load_op_graph(replace(install, version=TESTED_VERSION)) is graph
    assert asked == []


def test_another_build_of_the_tested_version_is_asked(
    install: TorchInstall, graph: OpGraph, asked: list[TorchInstall]
) -> None:
    cuda = replace(install, version=TESTED_VERSION.replace("+cpu", "+cu130"))
    assert load_op_graph(cuda) is graph
    assert asked == [cuda]


def test_another_version_is_asked_once(install: TorchInstall, graph: OpGraph, asked: list[TorchInstall]) -> None:
    assert load_op_graph(install) is graph
    assert load_op_graph(install) is graph
    assert asked == [install]


def test_another_analysis_asks_again(
    install: TorchInstall, graph: OpGraph, asked: list[TorchInstall], monkeypatch: pytest.MonkeyPatch
) -> None:
    load_op_graph(install)
    monkeypatch.setattr(load, "FORMAT", load.FORMAT + 1)
    load_op_graph(install)
    assert asked == [install, install]


def with_kernel(truth: Truth, operator: str, key: str) -> Truth:
    extra = Registration(operator, key, Kind.KERNEL, Source.CPP, FILE, 1, True)
    others = frozenset(r for r in truth.registrations if (r.operator, r.key) != (operator, key))
    return replace(truth, registrations=others | {extra})


@pytest.mark.parametrize(
    ("operator", "key"),
    [
        # A registration that was not found, and two that were found without their kernels.
        ("aten::add.Tensor", "SparseCPU"),
        ("aten::clone", "Conjugate"),
        ("aten::add.Tensor", "Conjugate"),
    ],
)
def test_a_kernel_that_was_not_found_is_a_mismatch(
    install: TorchInstall,
    asked: list[TorchInstall],
    truth: Truth,
    monkeypatch: pytest.MonkeyPatch,
    operator: str,
    key: str,
) -> None:
    monkeypatch.setattr(load, "read_truth", lambda _: with_kernel(truth, operator, key))
    for _ in range(2):
        with pytest.raises(GroundTruthMismatch, match=f"2.99.0.* registers the {key} kernel of {operator}") as fault:
            load_op_graph(install)
        assert fault.value.where == str(install.library(LIBRARY))
        assert TESTED_VERSION in (fault.value.remedy or "")


def test_kernels_for_other_devices_may_be_missing(
    install: TorchInstall, graph: OpGraph, asked: list[TorchInstall], truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "read_truth", lambda _: with_kernel(truth, "aten::add.Tensor", "XLA"))
    assert load_op_graph(install) is graph


def test_what_other_libraries_register_does_not_count(
    install: TorchInstall, graph: OpGraph, asked: list[TorchInstall], truth: Truth, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = Registration("aten::add.Tensor", "SparseCPU", Kind.KERNEL, Source.CPP, "other_library.cpp", 1, True)
    changed = replace(truth, registrations=truth.registrations | {elsewhere})
    monkeypatch.setattr(load, "read_truth", lambda _: changed)
    assert load_op_graph(install) is graph


def test_the_package_of_a_library_is_found(package: Path) -> None:
    found = library_install(package / "lib" / LIBRARY)
    assert (found.package, found.version) == (package, "2.99.0+cpu")


def test_a_library_needs_its_package(package: Path, tmp_path: Path, install: TorchInstall) -> None:
    with pytest.raises(UnsupportedLibrary, match="not part of a PyTorch package"):
        library_install(tmp_path / LIBRARY)
    with pytest.raises(UnsupportedLibrary, match="no such library"):
        load_op_graph(install, library=package / "lib" / "libmissing.so")
    (package / "version.py").write_text("nothing\n")
    with pytest.raises(MissingInstallation, match="cannot read the version"):
        library_install(package / "lib" / LIBRARY)
