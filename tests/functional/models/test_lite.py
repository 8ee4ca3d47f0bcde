"""Lite-interpreter models, in both containers, against the list that PyTorch's mobile loader makes."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

from opsieve.models import Reach, read_model

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:Lite Interpreter is deprecated")]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, bool], Path]:
    """The models that the lite interpreter accepts: (name, is flatbuffer) -> file."""
    from tests.data.models.make_models import Lite
    from tests.functional.models.zoo import script_models

    folder = tmp_path_factory.mktemp("lite")
    paths = {}
    for name, module in {"lite": torch.jit.script(Lite()), **script_models()}.items():
        for flatbuffer in (False, True):
            path = folder / f"{name}{'.ff' if flatbuffer else '.ptl'}"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    module._save_for_lite_interpreter(str(path), _use_flatbuffer=flatbuffer)
                except (RuntimeError, AttributeError):  # an instruction it does not have; a function
                    continue
            paths[name, flatbuffer] = path
    return paths


def listed(path: Path) -> set[str]:
    from torch.jit.mobile import _export_operator_list, _load_for_lite_interpreter

    return set(_export_operator_list(_load_for_lite_interpreter(str(path))))


def test_the_lite_interpreter_accepts_some_of_the_models(saved: dict[tuple[str, bool], Path]) -> None:
    assert {name for name, _ in saved} >= {"lite", "hooked", "quantized", "transformer", "transformer-traced"}


@pytest.mark.parametrize("flatbuffer", [False, True], ids=["zip", "flatbuffer"])
def test_the_operators_are_those_that_the_mobile_loader_lists(
    saved: dict[tuple[str, bool], Path], flatbuffer: bool
) -> None:
    for (name, is_flatbuffer), path in saved.items():
        if is_flatbuffer == flatbuffer:
            needs = read_model(path)
            assert not any(root.all_overloads for root in needs.roots)
            assert {str(root.name) for root in needs.roots} == listed(path), name


def test_both_containers_hold_the_same_functions(saved: dict[tuple[str, bool], Path]) -> None:
    for (name, is_flatbuffer), path in saved.items():
        if is_flatbuffer:
            zipped, flat = read_model(saved[name, False]), read_model(path)
            assert zipped.methods == flat.methods
            assert [root.name for root in zipped.roots] == [root.name for root in flat.roots]
            assert zipped.custom_classes == flat.custom_classes


def test_reach_is_what_the_dispatcher_says(saved: dict[tuple[str, bool], Path]) -> None:
    registered = set(torch._C._dispatch_get_all_op_names())
    for path in saved.values():
        for root in read_model(path).roots:
            assert (str(root.name) in registered) == (root.reach is Reach.DISPATCHER)
