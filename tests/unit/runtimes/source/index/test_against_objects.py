"""The index of a small tree against what its objects really define."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.runtimes.source.index import ObjectSymbols, SymbolIndex, read_object
from tests.unit.runtimes.source.index.small_tree import DEFINES, FILES, compile_tree


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ObjectSymbols]:
    made: dict[str, Path] = compile_tree(tmp_path_factory.mktemp("objects"))
    return {name: read_object(path) for name, path in made.items()}


@pytest.fixture(scope="module")
def index() -> SymbolIndex:
    return SymbolIndex.build(FILES, DEFINES)


def wanted(objects: dict[str, ObjectSymbols]) -> dict[str, str]:
    """Every symbol that one object wants from another, and the file that defines it."""
    undefined = set().union(*(symbols.undefined for symbols in objects.values()))
    return {symbol: name for name, symbols in objects.items() for symbol in symbols.defined & undefined}


def test_the_first_candidate_defines_every_symbol_that_is_wanted(
    objects: dict[str, ObjectSymbols], index: SymbolIndex
) -> None:
    truth = wanted(objects)
    assert len(truth) > 35
    placed = {symbol: next((one.path for one in index.candidates(symbol)), None) for symbol in truth}
    assert placed == truth


def test_every_strong_symbol_of_every_object_is_placed(objects: dict[str, ObjectSymbols], index: SymbolIndex) -> None:
    for name, symbols in objects.items():
        for symbol in symbols.strong:
            assert index.candidates(symbol)[0].path == name, symbol


def test_what_other_libraries_define_has_no_candidate(objects: dict[str, ObjectSymbols], index: SymbolIndex) -> None:
    undefined = set().union(*(symbols.undefined for symbols in objects.values()))
    foreign = undefined - wanted(objects).keys()
    assert "_ZTVN10__cxxabiv120__si_class_type_infoE" in foreign
    assert {symbol: index.candidates(symbol) for symbol in foreign} == dict.fromkeys(foreign, ())


def test_nothing_is_found_in_the_file_whose_condition_does_not_hold(index: SymbolIndex) -> None:
    paths = [one.path for one in index.candidates("_ZN2at15get_num_threadsEv")]
    assert paths == ["native/ParallelOpenMP.cpp", "native/ParallelNative.cpp"]


def test_without_the_macros_of_the_command_line_the_alternatives_stay_candidates() -> None:
    paths = [one.path for one in SymbolIndex.build(FILES).candidates("_ZN2at15get_num_threadsEv")]
    assert set(paths) == {"native/ParallelOpenMP.cpp", "native/ParallelNative.cpp"}


def test_a_file_compiled_for_several_processors_is_found_for_each() -> None:
    index = SymbolIndex.build(FILES, {"CPU_CAPABILITY": ("DEFAULT", "AVX2")})
    stub = "_ZN2at6native12DispatchStubIPFvRNS_6TensorEENS0_30neg_stub_DECLARE_DISPATCH_typeEE{}E"
    for capability in ("7DEFAULT", "4AVX2"):
        assert [one.path for one in index.candidates(stub.format(capability))] == ["native/NegKernel.cpp"]


@pytest.mark.parametrize(
    ("symbol", "path", "rule"),
    [
        ("FLAGS_keep_on_shrink", "core/Allocator.cpp", "variable by C10_DEFINE_bool"),
        ("_ZN2at6native18structured_add_out4implERKNS_6TensorES4_", "native/Shapes.cpp", "function by TORCH_IMPL_FUNC"),
        ("_ZTVN3c109AllocatorE", "core/Allocator.cpp", "function definition (the key function release)"),
        ("_ZTIN3c109Allocator4PoolE", "core/Allocator.cpp", "function definition (the key function drain)"),
        ("_ZTWN3c105depthE", "core/Allocator.cpp", "variable definition"),
        ("_ZN2at6TensorC2El", "core/Tensor.cpp", "function definition"),
        ("_ZThn8_N2at6TensorD0Ev", "core/Tensor.cpp", "function definition"),
        ("_ZGVZN2at6TensorC1ElE5local", "core/Tensor.cpp", "function definition"),
        ("_ZNK2at6Tensor4itemIfEET_v", "core/Tensor.cpp", "function by AT_FORALL_SCALAR_TYPES"),
    ],
)
def test_a_candidate_says_by_which_rule_it_was_found(index: SymbolIndex, symbol: str, path: str, rule: str) -> None:
    first = index.candidates(symbol)[0]
    assert (first.path, first.rule) == (path, rule)
