"""Scopes: for which kinds of tensors, and for which uses, a runtime is made.

The dispatcher picks a kernel by the tensors it is given. A scope says which dispatch keys can occur, and with that
which kernels of an operator can run.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from opsieve.graph.symbols import CATCH_ALL, INTERPRETER


class Scope(StrEnum):
    """What the runtime must be able to do; INFERENCE is part of every other."""

    INFERENCE = "inference"
    """Dense CPU tensors, forward, with or without gradient mode and autocast."""

    QUANTIZED = "quantized"
    SPARSE = "sparse"
    MKLDNN = "mkldnn"
    NESTED = "nested"
    AUTOGRAD = "autograd"
    """Backward passes: training."""

    ALL = "all"
    """Every registered kernel of the operators that stay, tracing, functionalization and batching among them."""


BACKENDS: Mapping[Scope, tuple[str, ...]] = {
    Scope.INFERENCE: ("CPU",),
    Scope.QUANTIZED: ("QuantizedCPU",),
    Scope.SPARSE: ("SparseCPU", "SparseCsrCPU"),
    Scope.MKLDNN: ("MkldnnCPU",),
    Scope.NESTED: ("NestedTensorCPU",),
}
"""The backend keys that tensors of each scope carry."""

OBJECT_CLASSES: Mapping[Scope, tuple[bytes, ...]] = {
    Scope.QUANTIZED: (
        b"Quantizer",
        b"PackedLinearWeight",
        b"PackedConvWeight",
        b"PackedEmbeddingBagWeight",
        b"CellParams",
    ),
    Scope.SPARSE: (b"SparseTensorImpl", b"SparseCsrTensorImpl"),
    Scope.MKLDNN: (b"OpaqueTensorImpl",),
    Scope.NESTED: (b"NestedTensorImpl",),
}
"""Parts of the names of classes whose virtual methods run for the tensors and packed weights of a scope. Which object
an operator is given is decided elsewhere, so what these methods dispatch is added to the scope, not to operators."""

ALIASES = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd", "CompositeImplicitAutograd")
"""Alias keys in the order in which they fill a backend's entry (c10/core/DispatchKeySet.cpp,
ATen/core/dispatch/OperatorEntry.cpp: computeDispatchTableEntryWithDebug)."""

ALWAYS = ("BackendSelect", "AutocastCPU", "Conjugate", "Negative", "ZeroTensor")
"""Keys that dense CPU calls pass through, whatever the backend."""

VIEW_FALLBACKS = ("Conjugate", "Negative", "ZeroTensor")
"""Fallbacks that materialise a lazy view before any operator without a kernel of its own for them."""

AUTOGRAD = ("Autograd", "AutogradCPU", "AutogradOther", "AutogradNestedTensor", "ADInplaceOrView")


def parse_scopes(names: tuple[str, ...]) -> frozenset[Scope]:
    """Scopes by name; INFERENCE is always in."""
    return frozenset({Scope.INFERENCE, *(Scope(name) for name in names)})


def selected_keys(registered: Mapping[str, object], scopes: frozenset[Scope]) -> frozenset[str]:
    """Of the keys that an operator has kernels for, those that can run in the scopes."""
    if Scope.ALL in scopes:
        return frozenset(registered)
    keys = {CATCH_ALL, INTERPRETER, *ALWAYS, *AUTOGRAD}
    for scope in scopes & BACKENDS.keys():
        for backend in BACKENDS[scope]:
            keys.update(_backend_keys(backend, registered))
    return frozenset(keys & registered.keys())


def _backend_keys(backend: str, registered: Mapping[str, object]) -> tuple[str, ...]:
    if backend in registered:
        return (backend,)
    if backend != "CPU":
        # Which alias serves a backend other than CPU depends on more than their order: take all of them.
        return (*ALIASES, "CompositeImplicitAutogradNestedTensor")
    return tuple(alias for alias in ALIASES if alias in registered)[:1]
