"""TorchScript models against what PyTorch's own compiler makes of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from opsieve.installed import find_torch
from opsieve.models import ModelNeeds, Reach, TorchOverloads, read_model, read_models
from opsieve.models.torch_facts import reach_of
from opsieve.operators import OperatorName
from tests.unit.models.files import TINY_CODE, script_members, unzipped, write

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

OVERLOADS = TorchOverloads(find_torch())


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Saved models by name: ours, and a published one that nobody here wrote."""
    from tests.functional.models.zoo import script_models

    folder = tmp_path_factory.mktemp("zoo")
    paths = {}
    for name, model in script_models().items():
        paths[name] = folder / f"{name}.pt"
        torch.jit.save(model, str(paths[name]))
    return {**paths, "silero": silero()}


def silero() -> Path:
    """The file inside the package silero-vad, which is not imported."""
    spec = importlib.util.find_spec("silero_vad")
    assert spec is not None, "pip install --no-deps silero-vad"
    assert spec.origin is not None
    return Path(spec.origin).parent / "data" / "silero_vad.jit"


@pytest.fixture(scope="module")
def exact(models: dict[str, Path]) -> dict[str, ModelNeeds]:
    """All models, read with one child process."""
    return dict(zip(models, read_models(list(models.values()), overloads=OVERLOADS), strict=True))


def by_function(needs: ModelNeeds) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {method: set() for method in needs.methods}
    for root in needs.roots:
        for use in root.uses:
            found[use.method].add(root.name.base_name if root.all_overloads else str(root.name))
    return found


NAMES = (
    "everything",
    "syntax",
    "hooked",
    "quantized",
    "quantized-frozen",
    "transformer",
    "transformer-traced",
    "function",
    "silero",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_calls_what_a_real_load_compiles(
    models: dict[str, Path], exact: dict[str, ModelNeeds], name: str
) -> None:
    from tests.functional.models.zoo import loaded_calls

    assert exact[name].notes == ()
    found = by_function(exact[name])
    # Constants stand in the skeleton as uninitialised values, so that pseudo-operator may appear more often.
    ours = {function: calls - {"prim::Uninitialized"} for function, calls in found.items()}
    theirs = {function: calls - {"prim::Uninitialized"} for function, calls in loaded_calls(models[name]).items()}
    assert ours == theirs


@pytest.mark.parametrize("name", NAMES)
def test_the_text_alone_gives_the_same_base_names(
    models: dict[str, Path], exact: dict[str, ModelNeeds], name: str
) -> None:
    alone = read_model(models[name])
    text = by_function(alone)
    # An old file may need more, and the text does not tell whether its division is one of tensors.
    upgrades = {"aten::is_floating_point"} if "aten::div" in {str(root.name) for root in alone.roots} else set()
    bases = {
        function: {OperatorName.parse(call).base_name for call in calls} - {"prim::Uninitialized"}
        for function, calls in by_function(exact[name]).items()
    }
    for function, calls in bases.items():
        found = text[function] - {"prim::Uninitialized"} - (upgrades - calls)
        assert found >= calls
        # What the text cannot tell apart is known to be of the interpreter: indexing a list, or a tuple.
        assert all(
            reach_of(OperatorName.parse(base), all_overloads=True) is Reach.INTERPRETER for base in found - calls
        )


@pytest.mark.parametrize("name", NAMES)
def test_reach_is_what_the_dispatcher_says(exact: dict[str, ModelNeeds], name: str) -> None:
    registered = set(torch._C._dispatch_get_all_op_names())
    for root in exact[name].roots:
        assert (str(root.name) in registered) == (root.reach is Reach.DISPATCHER)
        assert root.reach is reach_of(root.name)


@pytest.mark.parametrize("name", NAMES)
def test_places_are_lines_of_the_code(models: dict[str, Path], exact: dict[str, ModelNeeds], name: str) -> None:
    members = unzipped(models[name])
    for root in exact[name].roots:
        for use in root.uses:
            member, _, line = use.place.rpartition(":")
            text = members[member].decode().splitlines()[int(line) - 1]
            assert text.strip()
            if root.name.namespace == "aten" and f"torch.{root.name.base}(" in members[member].decode():
                assert f"torch.{root.name.base}(" in text


def test_pytorchs_own_list_is_contained_where_it_makes_one(
    models: dict[str, Path], exact: dict[str, ModelNeeds]
) -> None:
    listed = 0
    for name, path in models.items():
        try:
            theirs = set(torch.jit.export_opnames(torch.jit.load(path)))
        except RuntimeError:
            continue
        listed += 1
        assert theirs <= {str(root.name) for root in exact[name].roots}
    assert listed >= 4


@pytest.mark.parametrize(("name", "instruction"), [("silero", "ENTER"), ("everything", "FORK")])
def test_models_that_export_opnames_refuses_are_read(
    models: dict[str, Path], exact: dict[str, ModelNeeds], name: str, instruction: str
) -> None:
    with pytest.raises(RuntimeError, match=f"{instruction} is not supported in mobile module"):
        torch.jit.export_opnames(torch.jit.load(models[name]))
    assert len(exact[name].roots) > 30


def test_custom_classes(exact: dict[str, ModelNeeds]) -> None:
    expected = tuple(
        f"__torch__.torch.classes.{name}" for name in ("quantized.LinearPackedParamsBase", "rnn.CellParamsBase")
    )
    assert exact["quantized"].custom_classes == expected
    assert exact["quantized-frozen"].custom_classes == expected
    assert exact["silero"].custom_classes == ()


def test_an_old_file_is_upgraded_as_pytorch_does_it(tmp_path: Path) -> None:
    from tests.functional.models.zoo import loaded_calls

    class Divide(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x / y

    torch.jit.trace(Divide(), (torch.ones(2), torch.ones(2))).save(str(tmp_path / "new.pt"))
    members = {name: data for name, data in unzipped(tmp_path / "new.pt").items() if "version" not in name}
    old = write(tmp_path / "old.pt", {**members, "version": "3"})
    exact, text = read_model(old, overloads=OVERLOADS), read_model(old)
    names = {str(root.name) for root in exact.roots}
    assert names >= {"aten::div.Tensor_mode", "aten::is_floating_point"}
    assert names == set().union(*loaded_calls(old).values())
    assert {root.name.base_name for root in text.roots if root.reach is Reach.DISPATCHER} >= {
        root.name.base_name for root in exact.roots if root.reach is Reach.DISPATCHER
    }


def test_an_operator_that_is_not_installed_costs_only_what_calls_it(tmp_path: Path) -> None:
    code = TINY_CODE + "def boxes(x: Tensor) -> Tensor:\n  return ops.torchvision.nms(torch.exp(x), x, 0.5)\n"
    needs = read_model(write(tmp_path / "m.pt", script_members(code)), overloads=OVERLOADS)
    assert {str(root.name): root.all_overloads for root in needs.roots} == {
        "aten::exp": True,
        "aten::relu": False,
        "torchvision::nms": True,
    }
    [note] = needs.notes
    assert note.startswith("PyTorch cannot compile __torch__.boxes: ")
    assert "torchvision::nms" in note


def test_nothing_of_a_model_runs(tmp_path: Path) -> None:
    made = tmp_path / "made"
    save = f'torch.save("text", "{made}")'
    code = (
        "class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
        "  def __getstate__(self: __torch__.Net) -> int:\n    return 1\n"
        f"  def __setstate__(self: __torch__.Net,\n    state: int) -> NoneType:\n    {save}\n    return None\n"
        f"  def forward(self: __torch__.Net,\n    x: Tensor) -> Tensor:\n    {save}\n    return torch.relu(x)\n"
    )
    path = write(tmp_path / "m.pt", {**script_members(code), "data.pkl": b"\x80\x02c__torch__\nNet\n)\x81K\x01b."})
    needs = read_model(path, overloads=OVERLOADS)
    assert needs.notes == ()
    assert {"aten::save", "aten::relu"} <= {str(root.name) for root in needs.roots}
    assert not made.exists()


def test_code_that_breaks_the_compiler_is_read_as_text(tmp_path: Path) -> None:
    deep = TINY_CODE.replace("torch.relu(x)", "(" * 9_999 + "torch.relu(x)" + ")" * 9_999)
    endless = TINY_CODE.replace("torch.relu(x)", "-" * 1_000_000 + "x")
    good = write(tmp_path / "good.pt", script_members())
    paths = [write(tmp_path / f"{n}.pt", script_members(code)) for n, code in enumerate((deep, endless))]
    broken, dead, fine = read_models([*paths, good], overloads=OVERLOADS)
    for needs in (broken, dead):
        assert len(needs.notes) == 1
        assert all(root.all_overloads for root in needs.roots)
    assert "status -11" in dead.notes[0]
    assert fine.notes == ()
    assert not fine.roots[0].all_overloads


@pytest.mark.parametrize(
    ("overloads", "reason"),
    [
        (TorchOverloads(OVERLOADS.torch, seconds=-29.9), "no answer within"),
        (TorchOverloads(OVERLOADS.torch, memory_bytes=64 << 20), "failed with status"),
    ],
    ids=["time", "memory"],
)
def test_the_child_has_limits(tmp_path: Path, overloads: TorchOverloads, reason: str) -> None:
    needs = read_model(write(tmp_path / "m.pt", script_members()), overloads=overloads)
    assert reason in needs.notes[0]
    assert [str(root.name) for root in needs.roots] == ["aten::relu"]
