from __future__ import annotations

import pytest

from opsieve.cli.options import SCOPES
from opsieve.graph.scopes import BACKENDS, OBJECT_CLASSES, Scope, parse_scopes, selected_keys
from opsieve.graph.symbols import CATCH_ALL, INTERPRETER


@pytest.mark.parametrize(
    ("registered", "scopes", "expected"),
    [
        # The backend's own kernel, or else the first alias in the order of the dispatcher.
        ("CPU CompositeImplicitAutograd Meta CUDA", "", "CPU"),
        ("CompositeImplicitAutograd", "", "CompositeImplicitAutograd"),
        ("CompositeImplicitAutograd CompositeExplicitAutograd", "", "CompositeExplicitAutograd"),
        (
            "CompositeExplicitAutograd CompositeExplicitAutogradNonFunctional",
            "",
            "CompositeExplicitAutogradNonFunctional",
        ),
        ("Meta CUDA SparseCPU", "", ""),
        # Keys that every call on the CPU passes.
        ("CPU BackendSelect AutocastCPU Conjugate", "", "CPU BackendSelect AutocastCPU Conjugate"),
        ("CPU Autograd ADInplaceOrView AutogradCUDA", "", "CPU Autograd ADInplaceOrView"),
        (f"{CATCH_ALL}", "", f"{CATCH_ALL}"),
        (f"{INTERPRETER}", "", f"{INTERPRETER}"),
        # A scope adds its backends, and for an operator without them all aliases.
        ("CPU QuantizedCPU", "quantized", "CPU QuantizedCPU"),
        ("CPU QuantizedCPU", "", "CPU"),
        ("CPU SparseCPU SparseCsrCPU", "sparse", "CPU SparseCPU SparseCsrCPU"),
        ("CPU MkldnnCPU", "mkldnn", "CPU MkldnnCPU"),
        ("CPU CompositeImplicitAutograd", "quantized", "CPU CompositeImplicitAutograd"),
        (
            "NestedTensorCPU CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd",
            "nested",
            "NestedTensorCPU CompositeImplicitAutograd",
        ),
        (
            "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd",
            "nested",
            "CompositeImplicitAutogradNestedTensor CompositeImplicitAutograd",
        ),
        ("CPU Meta CUDA Tracer FuncTorchBatched", "all", "CPU Meta CUDA Tracer FuncTorchBatched"),
        ("CPU Meta", "autograd", "CPU"),
    ],
)
def test_keys_that_can_run_in_a_scope(registered: str, scopes: str, expected: str) -> None:
    by_key = dict.fromkeys(registered.split(), (1,))
    assert selected_keys(by_key, parse_scopes(tuple(scopes.split()))) == set(expected.split())


def test_inference_is_in_every_scope() -> None:
    assert parse_scopes(()) == {Scope.INFERENCE}
    assert parse_scopes(("sparse", "sparse")) == {Scope.INFERENCE, Scope.SPARSE}
    with pytest.raises(ValueError, match="no_scope"):
        parse_scopes(("no_scope",))


def test_the_command_line_offers_every_scope() -> None:
    assert tuple(Scope) == SCOPES


def test_scopes_with_objects_of_their_own_have_backends() -> None:
    assert set(OBJECT_CLASSES) <= set(BACKENDS)
