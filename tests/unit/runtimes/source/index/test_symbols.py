"""Reading symbols."""

from __future__ import annotations

import pytest

from opsieve.runtimes.source.index.symbols import MAX_SYMBOL, SymbolKind, read_symbol

FUNCTION, VARIABLE, CLASS, C = SymbolKind.FUNCTION, SymbolKind.VARIABLE, SymbolKind.CLASS, SymbolKind.C


@pytest.mark.parametrize(
    ("symbol", "kind", "key", "arguments", "parameters"),
    [
        ("mz_crc32", C, "mz_crc32", "", None),
        ("_Znonsense", C, "_Znonsense", "", None),
        ("_ZN2at6native3addERKNS_6TensorES3_", FUNCTION, "at::native::add", "", "at::Tensor const&, at::Tensor const&"),
        ("_ZN2at6TensorC2Ev", FUNCTION, "at::Tensor::Tensor", "", ""),
        ("_ZN2at6TensorD0Ev", FUNCTION, "at::Tensor::~Tensor", "", ""),
        ("_ZThn16_N2at6TensorD1Ev", FUNCTION, "at::Tensor::~Tensor", "", ""),
        ("_ZTVN2at6TensorE", CLASS, "at::Tensor", "", None),
        ("_ZTIN2at3BoxIiEE", CLASS, "at::Box", "<int>", None),
        ("_ZTSN2at6TensorE", CLASS, "at::Tensor", "", None),
        ("_ZTTN2at6TensorE", CLASS, "at::Tensor", "", None),
        ("_ZN2at5countE", VARIABLE, "at::count", "", None),
        ("_ZTHN2at1xE", VARIABLE, "at::x", "", None),
        ("_ZTWN2at1xE", VARIABLE, "at::x", "", None),
        ("_ZGVZN2at1fEvE1x", FUNCTION, "at::f", "", ""),
        ("_ZZN2at1fEiENKUlvE_clEv", FUNCTION, "at::f", "", "int"),
        ("_ZN2at4nameB5cxx11Ev", FUNCTION, "at::name", "", ""),
        ("_ZNK2at6Tensor4itemIfEET_v", FUNCTION, "at::Tensor::item", "<float>", ""),
        ("_ZNSt3mapI1AS0_E1fEv", FUNCTION, "std::map::f", "<A, A>", ""),
        ("_ZN2atlsERSoRKNS_6TensorE", FUNCTION, "at::operator<<", "", "std::ostream&, at::Tensor const&"),
        ("_ZNK2at1AclEi", FUNCTION, "at::A::operator()", "", "int"),
        ("_ZNK2at1AptEv", FUNCTION, "at::A::operator->", "", ""),
        ("_ZNK2at1AcvbEv", FUNCTION, "at::A::operator type", "", ""),
        ("_ZN2at1AltIiEEbT_", FUNCTION, "at::A::operator<", "<int>", "int"),
        ("_ZN12_GLOBAL__N_11fEv", FUNCTION, "(anonymous namespace)::f", "", ""),
        ("_ZN2at1fEPFvN1aIiEEE", FUNCTION, "at::f", "", "void (*)(a<int>)"),
    ],
)
def test_parts(symbol: str, kind: SymbolKind, key: str, arguments: str, parameters: str | None) -> None:
    read = read_symbol(symbol)
    assert (read.kind, read.key, read.arguments, read.parameters) == (kind, key, arguments, parameters)


def test_a_symbol_that_is_too_long_is_not_read() -> None:
    symbol = "_Z" + "3abc" * MAX_SYMBOL
    assert read_symbol(symbol).key == symbol
