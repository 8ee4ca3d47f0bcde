"""torch.export models against the graphs of the program itself, and against what running it dispatches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opsieve.models import Reach, read_model

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def branches() -> object:
    from tests.data.models.make_models import Branches

    rows = torch.export.Dim("rows", min=2, max=9)
    return torch.export.export(Branches(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: rows}})


def branches_functional() -> object:
    return branches().run_decompositions({})  # type: ignore[attr-defined]


def encoder() -> object:
    model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    return torch.export.export(model, (torch.randn(1, 3, 8),))


def looping() -> object:
    from torch._higher_order_ops import while_loop

    class Loop(torch.nn.Module):
        def forward(self, n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            result: tuple[torch.Tensor, ...] = while_loop(
                lambda n, x: n > 0, lambda n, x: (n - 1, torch.cond(n > 2, torch.sin, torch.cos, (x,))), (n, x)
            )
            return result

    return torch.export.export(Loop(), (torch.tensor(3), torch.ones(2)))


MAKERS = [branches, branches_functional, encoder, looping]


def calls_of(module: object) -> set[str]:
    """Every operator that the graphs of `module` call, spelled as in ModelNeeds."""
    return {
        f"higher_order::{node.target.name()}"
        if isinstance(node.target, torch._ops.HigherOrderOperator)
        else node.target.name()
        for part in module.modules()  # type: ignore[attr-defined]
        if isinstance(part, torch.fx.GraphModule)
        for node in part.graph.nodes
        if isinstance(node.target, torch._ops.OperatorBase)
    }


@pytest.mark.parametrize("make", MAKERS)
def test_the_roots_are_what_the_loaded_module_calls(tmp_path: Path, make: Callable[[], object]) -> None:
    torch.export.save(make(), tmp_path / "m.pt2")
    needs = read_model(tmp_path / "m.pt2")
    module = torch.export.load(tmp_path / "m.pt2").module()
    assert {str(root.name) for root in needs.roots} == calls_of(module)
    assert not any(root.all_overloads for root in needs.roots)


def test_a_functional_program_copies_its_buffer_back(tmp_path: Path) -> None:
    program = branches_functional()
    torch.export.save(program, tmp_path / "m.pt2")
    assert "aten::copy_" not in calls_of(program.graph_module)  # type: ignore[attr-defined]
    assert "aten::copy_" in {str(root.name) for root in read_model(tmp_path / "m.pt2").roots}


@pytest.mark.parametrize("make", MAKERS)
def test_reach_is_what_the_dispatcher_says(tmp_path: Path, make: Callable[[], object]) -> None:
    torch.export.save(make(), tmp_path / "m.pt2")
    registered = set(torch._C._dispatch_get_all_op_names())
    for root in read_model(tmp_path / "m.pt2").roots:
        assert (str(root.name) in registered) == (root.reach is Reach.DISPATCHER)
