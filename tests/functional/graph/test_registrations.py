"""Registrations read from the binary against what torch reports of itself: 100 %, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.graph.dispatcher_dump import FALLBACK, Source
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import ALWAYS, BACKENDS, Scope, selected_keys
from opsieve.graph.symbols import CATCH_ALL, INTERPRETER
from opsieve.graph.truth import ALL_OPERATORS, KeyDifference, Truth, compare_registrations, source_files_in

pytestmark = pytest.mark.torch

CPU_SIDE = (
    "CPU",
    "CompositeExplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
    "CompositeImplicitAutograd",
    "CompositeImplicitAutogradNestedTensor",
    "QuantizedCPU",
    "MkldnnCPU",
    "SparseCPU",
    "SparseCsrCPU",
    "NestedTensorCPU",
    "Autograd",
    "AutogradCPU",
    "AutogradOther",
    "AutogradNestedTensor",
    "AutocastCPU",
    "ADInplaceOrView",
    "BackendSelect",
    "Conjugate",
    "Negative",
    "ZeroTensor",
    "Tracer",
)
# The autograd key that tensors of each scope carry (as the recorder sees them).
AUTOGRAD_KEYS = {
    Scope.INFERENCE: "AutogradCPU",
    Scope.QUANTIZED: "AutogradCPU",
    Scope.SPARSE: "AutogradCPU",
    Scope.MKLDNN: "AutogradOther",
    Scope.NESTED: "AutogradNestedTensor",
}
# Registered by libtorch_python.so in 2.13.0.
ELSEWHERE = {"aten::get_gradients", "inductor::resize_storage_bytes_"}


@pytest.fixture(scope="module")
def differences(op_graph: OpGraph, library: Path, truth: Truth) -> dict[str, KeyDifference]:
    files = source_files_in(library, truth)
    return {d.key: d for d in compare_registrations(op_graph.registrations, truth, files=files)}


@pytest.mark.parametrize("key", CPU_SIDE)
def test_every_registration_for_the_cpu_is_found_and_none_is_invented(
    differences: dict[str, KeyDifference], key: str
) -> None:
    difference = differences[key]
    assert difference.expected > 0
    assert (difference.missing, difference.spurious) == ((), ())


def test_so_are_those_of_all_other_keys(differences: dict[str, KeyDifference]) -> None:
    others = differences.keys() - {*CPU_SIDE, INTERPRETER}
    assert len(others) > 20
    assert {key: differences[key] for key in others if differences[key].missing or differences[key].spurious} == {}


def test_only_kernels_of_other_libraries_are_left_out(op_graph: OpGraph, library: Path, truth: Truth) -> None:
    files = source_files_in(library, truth)
    elsewhere = {r for r in truth.registrations if r.source is Source.CPP and r.file not in {*files, ""}}
    assert {r.operator for r in elsewhere} == ELSEWHERE


def test_the_comparison_notices_one_kernel_too_few_or_too_many(op_graph: OpGraph, library: Path, truth: Truth) -> None:
    found = {name: dict(kernels) for name, kernels in op_graph.registrations.items()}
    del found["aten::mm"]["CPU"]
    found["aten::linear"]["CPU"] = (0,)
    files = source_files_in(library, truth)
    changed = {d.key: d for d in compare_registrations(found, truth, files=files)}["CPU"]
    assert (changed.missing, changed.spurious) == (("aten::mm",), ("aten::linear",))


def test_fallbacks_are_kernels_exactly_where_torch_has_no_fallthrough(op_graph: OpGraph, truth: Truth) -> None:
    assert {key for key, kernels in op_graph.fallbacks.items() if kernels} == {
        key for key, fallback in truth.fallbacks.items() if fallback.kind == "kernel"
    }


@pytest.mark.parametrize("scope", BACKENDS)
def test_the_kernel_that_torch_would_run_is_in_scope(op_graph: OpGraph, truth: Truth, scope: Scope) -> None:
    """For each operator and key, the key that provides torch's computed entry is among those of the scope."""
    wrong = []
    for operator, providers in truth.computed.items():
        registered = op_graph.registrations.get(operator, {})
        selected = selected_keys(registered, frozenset({Scope.INFERENCE, scope}))
        for key in (*BACKENDS[scope], *ALWAYS, AUTOGRAD_KEYS[scope], "ADInplaceOrView"):
            provider = providers.get(key, FALLBACK)
            # No name in the binary tells a kernel without a key from one of these two.
            named = CATCH_ALL if provider.startswith("Composite") and CATCH_ALL in registered else provider
            if provider != FALLBACK and named in registered and named not in selected:
                wrong.append((operator, key, provider))
    assert wrong == []


def test_only_fallthroughs_have_no_kernel(op_graph: OpGraph, truth: Truth) -> None:
    expected = {(r.operator, r.key) for r in truth.registrations if r.kind == "fallthrough" and r.source is Source.CPP}
    found = {
        (operator, key)
        for operator, kernels in op_graph.registrations.items()
        for key in kernels
        if not kernels[key] and operator != ALL_OPERATORS
    }
    # Where one boxed function serves several operators of a block, its address may stay in a register from the first
    # to the last. In 2.13.0 that is so in blocks of functorch only, which belong to no scope but `all`.
    assert expected <= found
    assert {key for _, key in found - expected} <= {"FuncTorchBatched", "FuncTorchDynamicLayerBackMode"}
