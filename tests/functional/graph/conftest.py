"""What the tests of the graph share: the graph of the installed torch, freshly built, and what torch says of itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from opsieve.code.elf import ElfFile
from opsieve.graph.load import LIBRARY
from opsieve.graph.op_graph import OpGraph, build_op_graph
from opsieve.graph.truth import Truth, read_truth
from opsieve.installed import TorchInstall, find_torch
from tests.functional.truth.observations import Observations, observe
from tests.functional.truth.recorder import compile_recorder
from tests.functional.truth.soundness import Judge


@pytest.fixture(scope="session")
def install() -> TorchInstall:
    return find_torch()


@pytest.fixture(scope="session")
def library(install: TorchInstall) -> Path:
    return install.library(LIBRARY)


@pytest.fixture(scope="session")
def op_graph(library: Path) -> OpGraph:
    # Not from the cache: what an earlier version of the analysis left there must not be what is tested.
    return build_op_graph(ElfFile(library))


@pytest.fixture(scope="session")
def truth(install: TorchInstall) -> Truth:
    return read_truth(install)


@pytest.fixture(scope="session")
def judge(op_graph: OpGraph, library: Path, truth: Truth) -> Judge:
    return Judge(op_graph, library, truth)


@pytest.fixture(scope="session")
def recorder(install: TorchInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_recorder(install, tmp_path_factory.mktemp("recorder"))


@pytest.fixture(scope="session")
def observed(
    install: TorchInstall, recorder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Observations]:
    """The observations of a mode, made once."""
    folder = tmp_path_factory.mktemp("observations")
    return cache(lambda mode: observe(install, recorder, mode, folder / mode))
