"""The operator graph of a small library that is written, and compiled, as PyTorch is."""

from __future__ import annotations

import re

import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import UnknownOperator, UnsupportedLibrary
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.symbols import CATCH_ALL, INTERPRETER
from tests.unit.native import LINKERS, Compiler, Names, fake_torch, op_graph_of

# (operator, key) -> the kernel behind its wrappers. Each block is one TORCH_LIBRARY* of the sources.
KERNELS = {
    ("aten::linear", CATCH_ALL): "linear_kernel",
    ("custom::helper", CATCH_ALL): "other_kernel",
    ("custom::entry", CATCH_ALL): "custom_kernel",
    ("aten::add.Tensor", "CPU"): "add_kernel",
    ("aten::mul.Tensor", "CPU"): "mul_kernel",
    ("aten::relu_", "CPU"): "relu_inplace_kernel",
    ("aten::clone", "CPU"): "clone_kernel",
    ("aten::mul.Tensor", "Autograd"): "mul_with_node",
    ("aten::relu", "MkldnnCPU"): "relu_kernel",
    ("aten::mul.Tensor", "MkldnnCPU"): "mul_mkldnn_kernel",
    ("aten::relu", "SparseCPU"): "relu_kernel",
    ("_::*", "Conjugate"): "fallback_kernel",
    ("aten::clone", "Autograd"): "boxed_kernel",
    ("aten::relu", "Autograd"): "boxed_fallback",
    ("_my_quantized::mul", "QuantizedCPU"): "mul_quantized",
    ("_my_quantized::to_sparse.sparse_dim", "QuantizedCPU"): "sparse_kernel",
    ("aten::mul.Tensor", "QuantizedCPU"): "mul_quantized",
    ("aten::to_sparse.sparse_dim", "SparseCPU"): "sparse_kernel",
    ("aten::relu", "CompositeImplicitAutograd"): "relu_kernel",
    ("aten::upper.str", INTERPRETER): "upper",
    ("aten::len.t", INTERPRETER): "length",
    ("aten::__interpolate", INTERPRETER): "interpolate",
}
FALLTHROUGHS = {("aten::clone", "Conjugate"), ("aten::add.Tensor", "Conjugate")}
ONLY_DECLARED = {"aten::add.Tensor", "aten::mul.Tensor", "aten::only_declared"}


ADDRESSES = {
    "loaded from the offset table": ("-fno-visibility-inlines-hidden",),
    "loaded in pairs": ("-ftree-slp-vectorize",),
}


@pytest.fixture(scope="module", params=[*LINKERS, *ADDRESSES])
def elf(request: pytest.FixtureRequest, compiler: Compiler) -> ElfFile:
    if request.param in LINKERS:
        return fake_torch(compiler, linker=request.param)
    return fake_torch(compiler, *ADDRESSES[request.param])


@pytest.fixture(scope="module")
def graph(elf: ElfFile) -> OpGraph:
    return op_graph_of(elf)


@pytest.fixture(scope="module")
def names(elf: ElfFile, graph: OpGraph) -> list[str]:
    return Names(elf, graph.code).all()


def last_identifier(name: str) -> str:
    """`boxed_kernel` of `..._ZN2at6native12boxed_kernelEPN3c105StackE...`: the kernel that a wrapper is made for."""
    found = re.findall(r"\d+([a-z_]*(?:kernel|quantized|node|fallback|upper|length|interpolate))E", name)
    return str(found[-1])


def test_every_registration_is_found_with_its_kernels(graph: OpGraph, names: list[str]) -> None:
    found = {(r.operator, r.key): r for r in graph.all_registrations if r.kernels}
    assert {place: last_identifier(names[r.kernels[0]]) for place, r in found.items()} == KERNELS
    for registration in found.values():
        identifiers = {last_identifier(names[kernel]) for kernel in registration.kernels}
        assert len(identifiers) == 1
        both = [
            name for name in map(names.__getitem__, registration.kernels) if "boxed_from" in name or "unboxed_" in name
        ]
        assert len(both) in (0, 2)


def test_fallthroughs_and_declarations_have_no_kernel(graph: OpGraph) -> None:
    empty = [r for r in graph.all_registrations if not r.kernels]
    assert {(r.operator, r.key) for r in empty if not r.is_definition} == FALLTHROUGHS
    assert {r.operator for r in empty if r.is_definition} == ONLY_DECLARED
    assert "aten::only_declared" in graph
    assert "aten::only_declared" not in graph.registrations


def test_registrations_are_found_in_the_functions_that_make_them(graph: OpGraph, names: list[str]) -> None:
    blocks = [re.sub(r"^_ZL\d+|RN5torch7LibraryE$", "", names[function]) for function in graph.initialisers]
    assert sorted(blocks) == [
        "TORCH_LIBRARY_FRAGMENT_init_custom_3",
        "TORCH_LIBRARY_IMPL_init___Conjugate_8",
        "TORCH_LIBRARY_IMPL_init__my_quantized_QuantizedCPU_10",
        "TORCH_LIBRARY_IMPL_init_aten_Autograd_11",
        "TORCH_LIBRARY_IMPL_init_aten_Autograd_5",
        "TORCH_LIBRARY_IMPL_init_aten_CPU_4",
        "TORCH_LIBRARY_IMPL_init_aten_Conjugate_9",
        "TORCH_LIBRARY_IMPL_init_aten_MkldnnCPU_12",
        "TORCH_LIBRARY_IMPL_init_aten_MkldnnCPU_6",
        "TORCH_LIBRARY_IMPL_init_aten_SparseCPU_7",
        "TORCH_LIBRARY_init_aten",
        "_GLOBAL__sub_I_inlined.cpp",
    ]


def test_the_compiler_folded_what_the_test_needs_folded(elf: ElfFile, graph: OpGraph, names: list[str]) -> None:
    """One of two initialisers with the same body is only a jump to the other, or this test proves less than it says."""
    starts, ends = graph.code.functions.starts, graph.code.functions.ends
    pair = [number for number in graph.initialisers if re.search(r"aten_(MkldnnCPU_6|SparseCPU_7)", names[number])]
    assert min((ends - starts)[pair].tolist()) <= 16


def test_dispatch_entries_and_lookups_are_found(graph: OpGraph, names: list[str]) -> None:
    structs = {
        "add_Tensor": "aten::add.Tensor",
        "mul_Tensor": "aten::mul.Tensor",
        "relu": "aten::relu",
        "relu_": "aten::relu_",
        "clone": "aten::clone",
        "linear": "aten::linear",
        "to_sparse_sparse_dim": "aten::to_sparse.sparse_dim",
    }
    expected = {
        f"_ZN2at4_ops{len(struct)}{struct}{method}": operator
        for struct, operator in structs.items()
        for method in ("4callEi", "10redispatchEii")
    }
    invocations = graph.invocations
    assert {names[function]: operator for function, operator in invocations.entries.items()} == expected
    assert [(names[function], operator) for function, operator in invocations.lookups] == [
        ("_ZN2at6native6lookupEi", "custom::helper")
    ]
    assert invocations.unnamed == ()


def test_landmarks_are_found_by_name(graph: OpGraph, names: list[str]) -> None:
    found = graph.landmarks
    kernels = set(KERNELS.values()) - {"upper", "length", "interpolate"}
    assert {last_identifier(names[number]) for number in found.wrappers} == kernels
    assert {names[number].partition("Library")[2][:5] for number in found.registrars} == {
        "4_def",
        "4impl",
        "5_imp",
        "9_fal",
    }
    assert [names[number] for number in found.backward] == [
        "_ZN5torch8autograd9generated12MulBackward05applyEOSt6vectorIiSaIiEE"
    ]
    assert {scope: [names[number] for number in numbers] for scope, numbers in found.object_tables.items()} == {
        "quantized": [],
        "sparse": ["_ZTVN2at16SparseTensorImplE"],
        "mkldnn": [],
        "nested": [],
    }
    assert list(found.static_runtime.values()) == ["aten_mul"]


def test_operators_and_their_overloads(graph: OpGraph) -> None:
    declared = {operator for operator, _ in KERNELS} | {"aten::only_declared"}
    assert graph.operators == tuple(sorted(declared - {"_::*"}))
    assert graph.overloads("aten::add") == ("aten::add.Tensor",)
    assert graph.overloads("aten::nothing") == ()
    assert graph.reaches_dispatcher("aten::relu")
    assert not graph.reaches_dispatcher("aten::upper.str")
    assert graph.operators[graph.number("aten::relu_")] == "aten::relu_"
    assert set(graph.fallbacks) == {"Conjugate"}
    with pytest.raises(UnknownOperator, match=r"no operator aten::add$"):
        graph.number("aten::add")


def test_entries_of_operators(graph: OpGraph, names: list[str]) -> None:
    entries = {names[number] for number in graph.entries_of(["aten::relu", "aten::only_declared"])}
    assert entries == {"_ZN2at4_ops4relu4callEi", "_ZN2at4_ops4relu10redispatchEii"}
    assert graph.entries_of([]).dtype.kind == "i"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('const char* text = "aten::add"; int f() { return *text; }', "no operator registrations"),
        (
            """
            namespace torch { class Library { public: Library& _impl(const char*) &; }; }
            torch::Library& torch::Library::_impl(const char*) & { return *this; }
            namespace at::_ops { struct lost { static int call(int); }; int lost::call(int x) { return x; } }
            __attribute__((used)) static void TORCH_LIBRARY_IMPL_init_aten_CPU_1(torch::Library& m) { m._impl("a"); }
            """,
            "at::_ops::lost was not found",
        ),
    ],
)
def test_libraries_of_another_shape_are_refused(compiler: Compiler, source: str, message: str) -> None:
    elf = ElfFile(compiler.library(source, flags=["-O2"]))
    with pytest.raises(UnsupportedLibrary, match=message):
        op_graph_of(elf)


def test_initialisers_that_call_each_other_in_a_circle_end(compiler: Compiler) -> None:
    blocks = "".join(
        f"static void TORCH_LIBRARY_IMPL_init_aten_{key}_1(torch::Library& m) {{"
        f' if (turn == {number}) {{ m._impl("{key.lower()}"); }} TORCH_LIBRARY_IMPL_init_aten_{following}_1(m); }}'
        for number, (key, following) in enumerate([("CPU", "Meta"), ("Meta", "XLA"), ("XLA", "Meta")])
    )
    declared = "".join(
        f"static __attribute__((noinline, used)) void TORCH_LIBRARY_IMPL_init_aten_{key}_1(torch::Library&);"
        for key in ("CPU", "Meta", "XLA")
    )
    source = f"""
        namespace torch {{ class Library {{ public: Library& _impl(const char*) &; }}; }}
        __attribute__((noinline)) torch::Library& torch::Library::_impl(const char* x) & {{
          asm volatile("" : : "r"(x));
          return *this;
        }}
        volatile int turn;
        {declared} {blocks}
    """
    graph = op_graph_of(ElfFile(compiler.library(source, flags=["-O1", "-fno-optimize-sibling-calls"])))
    found = {(r.operator, r.key) for r in graph.all_registrations}
    assert {("aten::cpu", "CPU"), ("aten::meta", "CPU"), ("aten::xla", "CPU"), ("aten::meta", "Meta")} <= found
