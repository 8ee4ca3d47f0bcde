"""Names as they stand in libtorch_cpu.so of PyTorch 2.13.0, unless a comment says otherwise."""

from __future__ import annotations

import pytest

from opsieve.graph import symbols
from opsieve.graph.symbols import CATCH_ALL, Block

LIBRARY = "ERN5torch7LibraryE"
IMPL = (
    "_ZNR5torch7Library4implIPKcN3c1026CompileTimeFunctionPointerIFRN2at6TensorENS4_14DispatchKeySetES8_RKS7_EXadL_ZNS6_"
    "17functionalization13__ilshift___TES9_S8_SB_EEEEEERS0_T_OT0_NS_17_RegisterOrVerifyE"
)
BOXED = (
    "_ZN3c1011BoxedKernel19make_boxed_functionIXadL_ZN12_GLOBAL__N_117autograd_fallbackERKNS_14OperatorHandleE"
    "NS_14DispatchKeySetEPSt6vectorINS_6IValueESaIS8_EEEEEEvPNS_14OperatorKernelES5_S6_SB_"
)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ZL25TORCH_LIBRARY_init_onednnRN5torch7LibraryE", Block("onednn", CATCH_ALL)),
        ("_ZL25TORCH_LIBRARY_init__nnapiRN5torch7LibraryE", Block("_nnapi", CATCH_ALL)),
        (f"_ZN12_GLOBAL__N_1L38TORCH_LIBRARY_FRAGMENT_init_symm_mem_1{LIBRARY}", Block("symm_mem", CATCH_ALL)),
        (f"_ZN2at6native12_GLOBAL__N_1L34TORCH_LIBRARY_FRAGMENT_init_aten_5{LIBRARY}", Block("aten", CATCH_ALL)),
        (f"_ZN2at12_GLOBAL__N_1L35TORCH_LIBRARY_IMPL_init_aten_CPU_10{LIBRARY}", Block("aten", "CPU")),
        (f"_ZN12_GLOBAL__N_1L39TORCH_LIBRARY_IMPL_init_symm_mem_Meta_3{LIBRARY}", Block("symm_mem", "Meta")),
        ("_ZL34TORCH_LIBRARY_IMPL_init___Python_0RN5torch7LibraryE", Block("_", "Python")),
        (f"_ZN12_GLOBAL__N_1L39TORCH_LIBRARY_IMPL_init___AutogradCPU_1{LIBRARY}", Block("_", "AutogradCPU")),
        # Autocast is another spelling of AutocastCUDA.
        (f"_ZN2at8autocast12_GLOBAL__N_1L36TORCH_LIBRARY_IMPL_init___Autocast_1{LIBRARY}", Block("_", "AutocastCUDA")),
        (
            f"_ZN2at9functorchL47TORCH_LIBRARY_IMPL_init_aten_FuncTorchBatched_2{LIBRARY}",
            Block("aten", "FuncTorchBatched"),
        ),
        # The cold part of an initialiser registers nothing.
        ("_ZL25TORCH_LIBRARY_init_onednnRN5torch7LibraryE.cold", None),
        ("_ZNR5torch7Library9_fallbackEONS_11CppFunctionE", None),
        # Made up: the name takes another argument, or is longer than its length says.
        ("_ZL25TORCH_LIBRARY_init_onednnRKN5torch7LibraryEi", None),
        ("_ZL99TORCH_LIBRARY_IMPL_init_7LibraryE", None),
        ("", None),
    ],
)
def test_initialisers_tell_namespace_and_key(name: str, expected: Block | None) -> None:
    assert symbols.initialiser_block(name.encode()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ZL32TORCH_LIBRARY_static_init_onednn", Block("onednn", CATCH_ALL)),
        ("_ZL34TORCH_LIBRARY_static_init__dtensor", Block("_dtensor", CATCH_ALL)),
        ("_ZN12_GLOBAL__N_1L45TORCH_LIBRARY_FRAGMENT_static_init_symm_mem_1E", Block("symm_mem", CATCH_ALL)),
        ("_ZN12_GLOBAL__N_1L46TORCH_LIBRARY_IMPL_static_init___AutogradCPU_1E", Block("_", "AutogradCPU")),
        ("_ZTVN2at16SparseTensorImplE", None),
    ],
)
def test_static_objects_tell_the_same(name: str, expected: Block | None) -> None:
    assert symbols.static_object_block(name.encode()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ZNR5torch7Library5_implEPKcONS_11CppFunctionENS_17_RegisterOrVerifyE", "impl"),
        (IMPL, "impl"),
        (
            "_ZNR5torch7Library4_defEOSt7variantIJN3c1012OperatorNameENS2_14FunctionSchemaEEEONS_11CppFunctionERKSt6vector"
            "INS_10headeronly3TagESaISB_EE",
            "def",
        ),
        (
            "_ZNR5torch7Library3defEPKcRKSt6vectorINS_10headeronly3TagESaIS5_EENS_17_RegisterOrVerifyE.constprop.0",
            "def",
        ),
        ("_ZNR5torch7Library9_fallbackEONS_11CppFunctionE", "fallback"),
        (
            "_ZNO3c1017RegisterOperators2opIFN2at6TensorERKS3_dEEENSt9enable_ifIXntE4typeERKNSt7__cxx1112basic_string",
            "def",
        ),
        ("_ZN3c1017RegisterOperators11registerOp_EONS0_7OptionsE", None),
        ("_ZN5torch7LibraryC1ENS0_4KindE", None),
        ("_ZN5torch11CppFunctionD2Ev", None),
    ],
)
def test_registering_functions_are_told_apart(name: str, expected: str | None) -> None:
    assert symbols.registration_call(name.encode()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE", "add_Tensor"),
        ("_ZN2at4_ops10add_Tensor10redispatchEN3c1014DispatchKeySetERKNS_6TensorES6_RKNS2_6ScalarE", "add_Tensor"),
        ("_ZN2at4_ops18__ilshift___Scalar4callERNS_6TensorERKN3c106ScalarE", "__ilshift___Scalar"),
        ("_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE.cold", None),
        ("_ZN2at4_opsL30create_add_Tensor_typed_handleEv", None),
        # Made up: another method, and a length that reaches behind the name.
        ("_ZN2at4_ops10add_Tensor6schemaEv", None),
        ("_ZN2at4_ops99add_Tensor4callEv", None),
    ],
)
def test_dispatch_entries_tell_their_operator(name: str, expected: str | None) -> None:
    assert symbols.dispatch_entry(name.encode()) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("_ZN2at4_opsL30create_add_Tensor_typed_handleEv", "add_Tensor"),
        ("_ZN2at4_opsL38create___ilshift___Scalar_typed_handleEv", "__ilshift___Scalar"),
        ("_ZN2at4_opsL30create_add_Tensor_typed_handleEv.cold", None),
    ],
)
def test_handles_tell_their_operator(name: str, expected: str | None) -> None:
    assert symbols.typed_handle(name.encode()) == expected


def test_wrappers_lookups_and_fallthroughs_are_recognised() -> None:
    assert symbols.is_kernel_wrapper(b"_ZN3c104impl31make_boxed_from_unboxed_functorINS0_6detail24WrapFunction")
    assert symbols.is_kernel_wrapper(b"_ZN3c104impl28wrap_kernel_functor_unboxed_INS0_6detail24WrapFunction")
    assert symbols.is_kernel_wrapper(BOXED.encode())
    assert not symbols.is_kernel_wrapper(b"_ZN2at6native3addERKNS_6TensorES3_RKN3c106ScalarE")
    assert symbols.finds_schema(b"_ZN3c1010Dispatcher17findSchemaOrThrowEPKcS2_")
    assert symbols.finds_schema(b"_ZN3c1010Dispatcher10findSchemaERKNS_12OperatorNameE")
    assert not symbols.finds_schema(b"_ZN3c1010Dispatcher9singletonEv")
    assert symbols.is_fallthrough(b"_ZN3c1018fallthrough_kernelEPNS_14OperatorKernelERKNS_14OperatorHandleE")
    assert not symbols.is_fallthrough(BOXED.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("relu_", "relu_"),
        ("aten::add.Tensor", "aten::add.Tensor"),
        ("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", "add.Tensor"),
        ("quantized::linear (Tensor X) -> Tensor Y", "quantized::linear"),
        ("a(\n  Tensor x\n) -> Tensor", "a"),
        ("ns::deeper::name", "ns::deeper::name"),
        ("expected a tensor", None),
        ("12", None),
        ("", None),
        ("add.Tensor(Tensor self", None),
        ("RegisterCPU.cpp:12", None),
        ("aten::", None),
    ],
)
def test_operators_are_found_in_texts(text: str, expected: str | None) -> None:
    assert symbols.operator_text(text) == expected
