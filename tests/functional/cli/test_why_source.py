"""`opsieve why` for a runtime that was linked from source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import SiteKind
from opsieve.runtimes.source.link.account import (
    KeptOperator,
    LinkAccount,
    Need,
    Sizes,
    account_to_json,
    selection_of,
)
from opsieve.runtimes.source.wanted import Wanted
from opsieve.select.selection import Reason, ReasonKind, RuntimeIdentity, SelectedOperator, Selection
from opsieve.select.store import selection_to_json
from tests.functional.cli.conftest import Result, fits

Opsieve = Callable[..., Result]
CONV, MM, ADD, ZERO = (OperatorName.parse(f"aten::{name}") for name in ("conv2d", "mm", "add.Tensor", "zero_"))


def kept(name: OperatorName, *, asked: bool = False, only_here: tuple[OperatorName, ...] = ()) -> KeptOperator:
    size = Sizes(code=12_300)
    return KeptOperator(name, (SiteKind.SCHEMA,), ("CPU",), "kernels.cpp", 1, asked, size, size, size, only_here)


ACCOUNT = LinkAccount(
    runtime=RuntimeIdentity("2.6.0", "f00d"),
    operators=(kept(ADD), kept(CONV, asked=True, only_here=(MM,)), kept(MM), kept(ZERO)),
    needs=(Need(CONV, MM, (0, 1)), Need(MM, ADD, (2,)), Need(None, ADD, (3,)), Need(None, ZERO, (4, 5))),
    functions=("conv(at::Tensor)", "call_mm()", "mm(at::Tensor)", "main", "main2", "clear()"),
    files=(),
    core=Sizes(),
    shared=Sizes(),
    program_bytes=1,
)


def selection() -> Selection:
    asked = SelectedOperator(CONV, (Reason(ReasonKind.MODEL, "net.ptl", "__torch__.Net.forward"),))
    return selection_of(ACCOUNT, Wanted((asked,), (), (), (), ("inference",)), ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "account.json").write_bytes(account_to_json(ACCOUNT))
    (tmp_path / "selection.json").write_bytes(selection_to_json(selection()))
    return tmp_path


def test_the_selection_has_all_reasons() -> None:
    reasons = {operator.name: operator.reasons for operator in selection().operators}
    assert reasons == {
        ADD: (Reason(ReasonKind.DEPENDENCY, "aten::mm"), Reason(ReasonKind.FRAMEWORK, "main")),
        CONV: (Reason(ReasonKind.MODEL, "net.ptl", "__torch__.Net.forward"),),
        MM: (Reason(ReasonKind.DEPENDENCY, "aten::conv2d"),),
        ZERO: (Reason(ReasonKind.FRAMEWORK, "clear()"),),
    }


def test_a_chain_with_the_functions_of_each_step(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::mm", folder, "--code")
    assert result.status == 0
    assert fits(result.out)
    assert result.out == (
        "net.ptl: __torch__.Net.forward\n  -> aten::conv2d\n    -> aten::mm\n\n"
        "aten::conv2d calls aten::mm through\n  conv(at::Tensor)\n  call_mm()\n\n"
        "Without it, 1 operator and 12.3 KB of code would go.\n"
    )


def test_one_that_the_runtime_itself_needs(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::zero_", folder, "--code")
    assert result.out.startswith("PyTorch itself: clear()\n  -> aten::zero_\n\nThe runtime itself calls aten::zero_ th")


def test_a_root_and_what_goes_with_it(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::conv2d", folder / "selection.json")
    assert result.out.endswith("Without it, 2 operators and 12.3 KB of code would go.\n")


def test_one_that_is_not_there(opsieve: Opsieve, folder: Path) -> None:
    result = opsieve("why", "aten::fft_rfft", folder)
    assert result.status == 1
    assert "aten::fft_rfft is not in this runtime" in result.out
    assert result.out.endswith("\n  opsieve build ... --runtime source --op aten::fft_rfft\n")


def test_the_same_as_json(opsieve: Opsieve, folder: Path) -> None:
    found = opsieve("why", "aten::add.Tensor", folder, "--code", "--format", "json").json
    assert [chain["operators"] for chain in found["chains"]] == [
        ["aten::conv2d", "aten::mm", "aten::add.Tensor"],
        ["aten::add.Tensor"],
    ]
    assert [step["from"] for step in found["code"]] == ["aten::conv2d", "aten::mm"]


def test_a_selection_of_another_build(opsieve: Opsieve, folder: Path) -> None:
    other = replace(selection(), runtime=RuntimeIdentity("1.13.1", "beef"))
    (folder / "selection.json").write_bytes(selection_to_json(other))
    result = opsieve("why", "aten::mm", folder)
    assert result.status == 2
    assert "the selection is for 1.13.1 (beef), the account for 2.6.0 (f00d)" in result.err
