"""Reading what the dispatcher says of itself, and comparing; the texts are from torch 2.13.0, shortened."""

from __future__ import annotations

from typing import Any

import pytest

from opsieve.errors import GroundTruthMismatch
from opsieve.graph.dispatcher_dump import FALLBACK, Kind, Registration, Source
from opsieve.graph.symbols import CATCH_ALL
from opsieve.graph.truth import ALL_OPERATORS, Truth, compare_registrations, parse_truth

BUILD = "/pytorch/build/aten/src/ATen"
ADD = f"""name: aten::add.Tensor
schema: aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
debug: registered at {BUILD}/RegisterSchema.cpp:6
alias analysis kind: FROM_SCHEMA
CPU: registered at {BUILD}/RegisterCPU_0.cpp:1297 :: (Tensor _0, Tensor _1, Scalar _2) -> Tensor _0 [ boxed unboxed ]
Meta: registered at /site packages/torch/_meta_registrations.py:54 :: (none) [ boxed ]
Meta (inactive): registered at {BUILD}/RegisterMeta_0.cpp:11 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]
Conjugate: registered at /pytorch/aten/src/ATen/ConjugateFallback.cpp:21 :: (none) [ fallthrough boxed ]
CompositeExplicitAutograd[alias]: registered at {BUILD}/RegisterExplicit.cpp:13 :: (Tensor _0) -> Tensor _0 [ boxed ]

"""
ADD_TABLE = [
    f"CPU: registered at {BUILD}/RegisterCPU_0.cpp:1297 [kernel]",
    f"QuantizedCPU: registered at {BUILD}/RegisterExplicit.cpp:13 [default backend kernel]",
    "AutogradCPU: registered at /pytorch/aten/src/ATen/core/VariableFallbackKernel.cpp:66 [backend fallback]",
    "Conjugate: fallthrough registered at /pytorch/aten/src/ATen/ConjugateFallback.cpp:21 [kernel]",
]
OLD_STYLE = """name: _test::cat
schema: _test::cat(Tensor[] inputs) -> Tensor
debug: registered by RegisterOperators
alias analysis kind: CONSERVATIVE (default)
CompositeImplicitAutograd[alias]: registered by RegisterOperators :: (Tensor[] _0) -> Tensor _0 [ boxed unboxed ]

"""
FALLBACKS = [
    "Conjugate: registered at /pytorch/aten/src/ATen/ConjugateFallback.cpp:17 [backend fallback]",
    "AutocastCPU: fallthrough registered at /pytorch/aten/src/ATen/autocast_mode.cpp:330 [backend fallback]",
]


def answer(**changes: Any) -> dict[str, Any]:
    return {
        "version": "2.13.0",
        "dumps": {"aten::add.Tensor": ADD, "_test::cat": OLD_STYLE},
        "tables": {"aten::add.Tensor": ADD_TABLE, "_test::cat": []},
        "fallbacks": FALLBACKS,
        "interpreter": ["aten::add.Tensor", "prim::Print"],
    } | changes


@pytest.fixture
def truth() -> Truth:
    return parse_truth(answer())


def test_a_kernel_is_read_with_key_place_and_language(truth: Truth) -> None:
    cpu = Registration(
        "aten::add.Tensor", "CPU", Kind.KERNEL, Source.CPP, f"{BUILD}/RegisterCPU_0.cpp", 1297, active=True
    )
    assert cpu in truth.registrations


def test_python_kernels_and_those_they_replaced_are_told_apart(truth: Truth) -> None:
    meta = {(r.source, r.active) for r in truth.registrations if r.key == "Meta"}
    assert meta == {(Source.PYTHON, True), (Source.CPP, False)}


def test_fallthroughs_aliases_and_old_style_registrations_are_read(truth: Truth) -> None:
    found = {(r.operator, r.key): r for r in truth.registrations}
    assert found["aten::add.Tensor", "Conjugate"].kind is Kind.FALLTHROUGH
    assert found["aten::add.Tensor", "CompositeExplicitAutograd"].kind is Kind.KERNEL
    assert (found["_test::cat", "CompositeImplicitAutograd"].file, truth.operators["_test::cat"]) == ("", Source.CPP)


def test_providers_are_keys(truth: Truth) -> None:
    assert truth.computed["aten::add.Tensor"] == {
        "CPU": "CPU",
        "QuantizedCPU": "CompositeExplicitAutograd",
        "AutogradCPU": FALLBACK,
        "Conjugate": "Conjugate",
    }


def test_fallbacks_and_interpreter_operators(truth: Truth) -> None:
    assert {key: r.kind for key, r in truth.fallbacks.items()} == {
        "Conjugate": Kind.KERNEL,
        "AutocastCPU": Kind.FALLTHROUGH,
    }
    assert truth.interpreter_only == {"prim::Print"}


@pytest.mark.parametrize(
    "changes",
    [
        {"dumps": {"aten::add.Tensor": ADD.replace("[ boxed unboxed ]", "boxed")}, "tables": {}},
        {"tables": {"aten::add.Tensor": ["CPU = kernel"]}},
        {"tables": {"aten::add.Tensor": ["CPU: registered at x.cpp:1 [quantum kernel]"]}},
        {"fallbacks": ["Conjugate"]},
    ],
)
def test_text_of_another_shape_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(GroundTruthMismatch):
        parse_truth(answer(**changes))


def found_in_library() -> dict[str, dict[str, tuple[int, ...]]]:
    return {
        "aten::add.Tensor": {"CPU": (1,), "Meta": (2,), "Conjugate": (), "CompositeExplicitAutograd": (3,)},
        "_test::cat": {CATCH_ALL: (4,)},
        "prim::Print": {"Interpreter": (5,)},
        ALL_OPERATORS: {"Conjugate": (6,), "AutocastCPU": ()},
    }


def test_the_same_registrations_make_no_difference(truth: Truth) -> None:
    differences = compare_registrations(found_in_library(), truth)
    assert [d for d in differences if d.missing or d.spurious] == []
    assert {d.key: d.expected for d in differences}["Conjugate"] == 2


def test_missing_and_spurious_are_named(truth: Truth) -> None:
    found = found_in_library()
    del found["aten::add.Tensor"]["CPU"]
    found["aten::mul.Tensor"] = {"CPU": (1,)}
    cpu = {d.key: d for d in compare_registrations(found, truth)}["CPU"]
    assert (cpu.missing, cpu.spurious) == (("aten::add.Tensor",), ("aten::mul.Tensor",))


def test_a_kernel_without_a_key_counts_where_torch_files_it(truth: Truth) -> None:
    found = found_in_library()
    found["aten::add.Tensor"][CATCH_ALL] = found["aten::add.Tensor"].pop("CompositeExplicitAutograd")
    assert not any(d.missing or d.spurious for d in compare_registrations(found, truth))


def test_only_the_files_of_a_library_are_expected_of_it(truth: Truth) -> None:
    differences = compare_registrations({}, truth, files=[f"{BUILD}/RegisterCPU_0.cpp"])
    assert {d.key: d.missing for d in differences if d.missing} == {
        "CPU": ("aten::add.Tensor",),
        "CompositeImplicitAutograd": ("_test::cat",),  # has no place, so it may be anywhere
        "Interpreter": ("prim::Print",),
    }
