"""What all tests on the real PyTorch share: a cache of their own, and the graph of the installed library in it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from opsieve.graph.load import load_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.installed import TorchInstall, find_torch
from tests.unit.native import Compiler


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Neither reads what an earlier version left in the user's cache, nor writes there.

    OPSIEVE_TEST_CACHE names a folder to be kept from one session to the next, while the analysis does not change.
    """
    folder = os.environ.get("OPSIEVE_TEST_CACHE") or str(tmp_path_factory.mktemp("cache"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPSIEVE_CACHE", folder)
        yield


@pytest.fixture(scope="session")
def torch_install() -> TorchInstall:
    return find_torch()


@pytest.fixture(scope="session")
def cached_graph(torch_install: TorchInstall, cache_of_the_tests: None) -> OpGraph:
    """The graph of the installed libtorch_cpu.so, as every command gets it."""
    return load_op_graph(torch_install)


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("native"))
