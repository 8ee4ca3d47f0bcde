from __future__ import annotations

import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.graph.dependencies import find_dependencies
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import parse_scopes
from opsieve.graph.symbols import CATCH_ALL
from opsieve.runtimes.wheel.keep import KeptFunctions, kept_functions
from opsieve.runtimes.wheel.removed import PrunedKernel, removed_functions
from opsieve.runtimes.wheel.roots import loader_roots
from tests.unit.native import Compiler, Names, fake_torch, op_graph_of


@pytest.fixture(scope="module")
def elf(compiler: Compiler) -> ElfFile:
    return fake_torch(compiler)


@pytest.fixture(scope="module")
def graph(elf: ElfFile) -> OpGraph:
    return op_graph_of(elf)


@pytest.fixture(scope="module")
def names(elf: ElfFile, graph: OpGraph) -> list[str]:
    return Names(elf, graph.code).all()


@pytest.fixture(scope="module")
def kept(elf: ElfFile, graph: OpGraph) -> KeptFunctions:
    scopes = parse_scopes(())
    operators = find_dependencies(graph, scopes).closure(["aten::mul.Tensor"])
    return kept_functions(graph, operators, scopes, loader_roots(elf, graph.code))


@pytest.fixture(scope="module")
def errors(elf: ElfFile, graph: OpGraph, kept: KeptFunctions, names: list[str]) -> dict[str, tuple[str, str]]:
    """Name of each function that raises -> the operator that it names, and its message."""
    found, redirects, _ = removed_functions(elf, kept)
    starts = graph.code.functions.starts.tolist()
    functions = [names[starts.index(start)] for start in redirects.starts.tolist()]
    assert (redirects.ends > redirects.starts).all()
    return {
        name: (found[number].function, found[number].message)
        for name, number in zip(functions, redirects.errors.tolist(), strict=True)
    }


def test_an_operator_that_is_not_selected_names_the_option(errors: dict[str, tuple[str, str]]) -> None:
    operator, message = errors["_ZN2at4_ops6linear4callEi"]
    assert operator == "aten::linear"
    assert message.startswith("aten::linear is not in this opsieve build of PyTorch")
    assert message.endswith("build again with --op aten::linear")


def test_a_kernel_outside_the_scopes_names_the_scope(errors: dict[str, tuple[str, str]]) -> None:
    wrappers = [error for name, error in errors.items() if "17mul_mkldnn_kernel" in name]
    assert len(wrappers) == 2
    for operator, message in wrappers:
        assert operator == "aten::mul.Tensor"
        assert message.startswith("the MkldnnCPU kernel of aten::mul.Tensor is not in this opsieve build")
        assert message.endswith("build again with --scope mkldnn")


def test_every_function_that_is_cut_raises_or_is_known_to_the_guard(
    elf: ElfFile, graph: OpGraph, kept: KeptFunctions, names: list[str], errors: dict[str, tuple[str, str]]
) -> None:
    _, redirects, guard = removed_functions(elf, kept)
    removed = np.flatnonzero(~kept.kept)
    assert guard.starts.tolist() == graph.code.functions.starts[removed].tolist()
    assert guard.ends.tolist() == graph.code.functions.ends[removed].tolist()
    assert [name.decode() for name in guard.names] == [names[number] for number in removed.tolist()]
    assert set(redirects.starts.tolist()) == set(graph.code.functions.starts[kept.cut].tolist())


def test_the_guard_knows_the_operator_that_leads_to_a_removed_function(elf: ElfFile, kept: KeptFunctions) -> None:
    _, _, guard = removed_functions(elf, kept)
    operator = {
        name.decode(): guard.operator_names[number] if number >= 0 else None
        for name, number in zip(guard.names, guard.operators.tolist(), strict=True)
    }
    assert operator["_ZN2at6native13linear_kernelEi"] == "aten::linear"
    assert operator["_ZN2at6nativeL13linear_helperEi"] == "aten::linear"
    assert operator["_ZN2at6native6lookupEi"] == "custom::entry"
    assert operator["_ZN2at11make_sparseEv"] is None
    assert "--consumer" in guard.advice


@pytest.mark.parametrize(
    ("kernel", "option"),
    [
        (PrunedKernel("aten::add.Tensor", ""), "--op aten::add.Tensor"),
        (PrunedKernel("aten::add.Tensor", "QuantizedCPU"), "--scope quantized"),
        (PrunedKernel("aten::add.Tensor", "SparseCsrCPU"), "--scope sparse"),
        (PrunedKernel("aten::add.Tensor", "NestedTensorCPU"), "--scope nested"),
        (PrunedKernel("aten::add.Tensor", "Meta"), "--scope all"),
        (PrunedKernel("aten::add.Tensor", CATCH_ALL), "--scope all"),
    ],
)
def test_the_option_that_brings_a_kernel_back(kernel: PrunedKernel, option: str) -> None:
    assert kernel.option == option
    assert option in kernel.error().message
    assert kernel.error().function == "aten::add.Tensor"
