"""The oracle: what a program's symbols say it can dispatch is what the link kept."""

from __future__ import annotations

import pytest

from opsieve.code.elf import ElfFile
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import SiteKind
from opsieve.runtimes.source.link.account.dispatch_symbols import dispatch_names, dispatched
from tests.functional.runtimes.source.link.account.conftest import SAMPLE, Builder

ZERO = OperatorName("test", "zero")
BY_NAME = {ZERO}
"""What the sample dispatches without a symbol that names the operator."""


def test_names_of_old_and_new_headers() -> None:
    assert {name: str(operator) for name, operator in dispatch_names(SAMPLE / "ops").items()} == {
        "add_Tensor": "test::add.Tensor",
        "mm": "test::mm",
        "relu": "test::relu",
    }


@pytest.mark.parametrize("roots", [(), ("test::conv",), ("test::mm",), ("test::relu", "test::len")])
@pytest.mark.parametrize("linker", ["lld", "bfd"])
@pytest.mark.parametrize("flags", [(), ("-Wl,--icf=all",)], ids=["plain", "folded"])
def test_both_closures_agree(builder: Builder, linker: str, roots: tuple[str, ...], flags: tuple[str, ...]) -> None:
    if flags and linker == "bfd":
        pytest.skip("GNU ld merges no functions")
    linked = builder.link("g++", linker, roots, "-no-pie", *flags)
    account = linked.account()
    kept = {operator.name for operator in account.operators if SiteKind.SCHEMA in operator.kinds}
    asked = {operator.name for operator in account.operators if operator.asked} & kept
    by_symbols = dispatched(ElfFile(linked.program, or_program=True), dispatch_names(SAMPLE / "ops"))
    assert by_symbols | asked | BY_NAME == kept
    assert not by_symbols & BY_NAME
