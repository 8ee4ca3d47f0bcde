from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models import ModelNeeds, Reach, read_model, read_models
from opsieve.models.overloads import Resolution, ScriptSources
from opsieve.operators import OperatorName

from .files import EVERYTHING, LITE, TINY_CODE, script_members, unzipped, write


@dataclass
class FakeOverloads:
    """Answers with what the test prepared and remembers what it was asked."""

    answers: list[Resolution | str]
    asked: list[ScriptSources] = field(default_factory=list)

    def resolve(self, models: Sequence[ScriptSources]) -> list[Resolution | str]:
        self.asked.extend(models)
        return self.answers


def names(needs: ModelNeeds, reach: Reach | None = None) -> set[str]:
    return {str(root.name) for root in needs.roots if reach in (None, root.reach)}


def test_every_kind_of_code_is_read() -> None:
    needs = read_model(EVERYTHING)
    assert needs.format == "torchscript"
    assert all(root.all_overloads for root in needs.roots)
    dispatched = "__and__ add cat cumsum gt linear lt mul neg relu relu_ select sigmoid size slice softmax sum tanh"
    assert names(needs, Reach.DISPATCHER) == {f"aten::{name}" for name in dispatched.split()}
    interpreted = (
        "Int __contains__ __getitem__ __isnot__ _set_item format is_grad_enabled len set_grad_enabled wait "
        "EnumValue Print RaiseException tolist unchecked_cast"
    )
    assert {root.name.base for root in needs.roots if root.reach is Reach.INTERPRETER} == set(interpreted.split())
    assert "__torch__.Everything.other" in needs.methods
    assert "__torch__.Activation.forward" not in needs.methods  # an interface has no code


def test_a_call_in_a_fork_belongs_to_the_method_around_it(tmp_path: Path) -> None:
    needs = read_model(EVERYTHING)
    [cumsum] = [root for root in needs.roots if root.name.base == "cumsum"]
    assert [use.method for use in cumsum.uses] == ["__torch__.background"]


def test_known_overloads_replace_base_names(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", script_members())
    place = "code/__torch__.py:7"
    overloads = FakeOverloads([Resolution({"__torch__.Net.forward": [("aten::relu", place)]}, {}, ["aten::relu"])])
    needs = read_model(path, overloads=overloads)
    [root] = needs.roots
    assert (root.name, root.all_overloads, root.reach) == (OperatorName("aten", "relu"), False, Reach.DISPATCHER)
    assert root.uses[0].place == place
    assert needs.notes == ()


def test_what_could_not_be_compiled_stays_a_base_name_and_is_noted(tmp_path: Path) -> None:
    code = TINY_CODE + "def helper(x: Tensor) -> Tensor:\n  return ops.torchvision.nms(torch.exp(x))\n"
    compiled = {"__torch__.Net.forward": [("aten::relu", "code/__torch__.py:7")]}
    overloads = FakeOverloads([Resolution(compiled, {"__torch__.helper": "Unknown builtin op"}, ["aten::relu"])])
    needs = read_model(write(tmp_path / "m.pt", script_members(code)), overloads=overloads)
    assert {str(root.name): root.all_overloads for root in needs.roots} == {
        "aten::exp": True,
        "aten::relu": False,
        "torchvision::nms": True,
    }
    assert needs.notes == ("PyTorch cannot compile __torch__.helper: Unknown builtin op",)


def test_a_failing_child_leaves_base_names_and_a_note(tmp_path: Path) -> None:
    needs = read_model(write(tmp_path / "m.pt", script_members()), overloads=FakeOverloads(["it ran out of time"]))
    assert [root.all_overloads for root in needs.roots] == [True]
    assert needs.notes == ("The overloads could not be found with PyTorch: it ran out of time",)


def test_code_that_compiling_would_run_is_never_handed_over(tmp_path: Path) -> None:
    code = "def f(x: Tensor=torch.zeros([1])) -> Tensor:\n  return x\n"
    overloads = FakeOverloads([])
    needs = read_model(write(tmp_path / "m.pt", script_members(code)), overloads=overloads)
    assert overloads.asked == []
    assert "compiling would execute" in needs.notes[0]
    assert names(needs) == {"aten::zeros"}


def test_a_default_that_is_a_named_tuple_may_be_compiled(tmp_path: Path) -> None:
    code = "class P(NamedTuple):\n  a : int\ndef f(p: __torch__.P=__torch__.P(1)) -> int:\n  return torch.neg((p)[0])\n"
    overloads = FakeOverloads([Resolution({}, {}, [])])
    read_model(write(tmp_path / "m.pt", script_members(code)), overloads=overloads)
    assert len(overloads.asked) == 1


def test_constants_are_replaced_by_values_of_their_type() -> None:
    overloads = FakeOverloads([""])
    read_model(EVERYTHING, overloads=overloads)
    [asked] = overloads.asked
    assert "by: str=uninitialized(str)" in asked.sources["code/__torch__.py"]
    assert "__torch__.Activation" not in asked.classes
    assert "__torch__.Counter" in asked.classes
    assert list(asked.functions) == ["__torch__.background", "__torch__.torch.nn.functional.relu"]


def test_only_code_is_handed_over() -> None:
    overloads = FakeOverloads([""])
    read_model(EVERYTHING, overloads=overloads)
    assert all(member.startswith("code/") for member in overloads.asked[0].sources)


def test_answers_meet_their_models_when_others_stand_between(tmp_path: Path) -> None:
    first = write(tmp_path / "a.pt", script_members(TINY_CODE.replace("relu", "exp")))
    refused = write(tmp_path / "b.pt", script_members("def f(x: int=torch.len([])) -> int:\n  return x\n"))
    second = write(tmp_path / "c.pt", script_members(TINY_CODE.replace("relu", "sin")))
    answers: list[Resolution | str] = ["first", "second"]
    needs = read_models([first, LITE, refused, second], overloads=FakeOverloads(answers))
    assert [model.path for model in needs] == [str(path) for path in (first, LITE, refused, second)]
    assert needs[0].notes[0].endswith("first")
    assert needs[1].notes == ()
    assert "compiling would execute" in needs[2].notes[0]
    assert needs[3].notes[0].endswith("second")


def test_an_old_file_needs_what_pytorch_makes_of_it(tmp_path: Path) -> None:
    code = TINY_CODE.replace("relu", "div")
    old = read_model(write(tmp_path / "old.pt", script_members(code, version=3)))
    new = read_model(write(tmp_path / "new.pt", script_members(code, version=4)))
    assert names(old) - names(new) == {"aten::is_floating_point", "prim::unchecked_cast"}


def test_operators_that_compiling_evaluates_are_kept(tmp_path: Path) -> None:
    code = TINY_CODE.replace("torch.relu(x)", "torch.promote_types(6, 3)")
    overloads = FakeOverloads([Resolution({"__torch__.Net.forward": []}, {}, [])])
    needs = read_model(write(tmp_path / "m.pt", script_members(code)), overloads=overloads)
    assert names(needs) == {"aten::promote_types"}


def test_a_convolution_that_loading_rewrites_counts_in_both_forms(tmp_path: Path) -> None:
    calls = {"__torch__.Net.forward": [("quantized::conv2d", "code/__torch__.py:7")]}
    overloads = FakeOverloads([Resolution(calls, {}, ["quantized::conv2d"])])
    needs = read_model(write(tmp_path / "m.pt", script_members()), overloads=overloads)
    assert names(needs) == {"quantized::conv2d", "quantized::conv2d.new"}


def test_a_call_without_a_line_takes_that_of_the_text(tmp_path: Path) -> None:
    code = TINY_CODE.replace("torch.relu(x)", "unchecked_cast(Tensor, x)")
    overloads = FakeOverloads([Resolution({"__torch__.Net.forward": [("prim::unchecked_cast", "")]}, {}, [])])
    [root] = read_model(write(tmp_path / "m.pt", script_members(code)), overloads=overloads).roots
    assert root.uses[0].place == "code/__torch__.py:7"


def test_methods_of_builtin_types_in_handwritten_code_are_operators(tmp_path: Path) -> None:
    code = TINY_CODE.replace("torch.relu(x)", "(self).forward(x.sin().cos(), )")
    assert names(read_model(write(tmp_path / "m.pt", script_members(code)))) == {"aten::sin", "aten::cos"}


def test_a_custom_class_in_the_constants_is_listed(tmp_path: Path) -> None:
    constants = b"\x80\x02c__torch__.torch.classes.quantized\nConv2dPackedParamsBase\n)\x81Nb\x85."
    path = write(tmp_path / "m.pt", {**script_members(), "constants.pkl": constants})
    assert read_model(path).custom_classes == ("__torch__.torch.classes.quantized.Conv2dPackedParamsBase",)


def test_an_archive_without_a_version_is_refused(tmp_path: Path) -> None:
    members = {name: data for name, data in unzipped(EVERYTHING).items() if "version" not in name}
    with pytest.raises(InvalidModel, match="which version"):
        read_model(write(tmp_path / "m.pt", members))


def test_reading_is_repeatable() -> None:
    assert read_model(EVERYTHING) == read_model(EVERYTHING)
