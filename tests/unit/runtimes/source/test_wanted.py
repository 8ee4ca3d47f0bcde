"""From models and options to roots."""

from dataclasses import replace

import pytest

from opsieve.errors import InvalidModel, UnknownOperator
from opsieve.graph.scopes import Scope
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import Site, SiteKind, Sites
from opsieve.runtimes.source.options import Interpreter, QuantizedEngine
from opsieve.runtimes.source.wanted import Policy, require_engine, require_loadable, wanted
from opsieve.select.choose import ExtraOperator


def site(kind: SiteKind, name: str, file: str) -> Site:
    operator = OperatorName.parse(name)
    return Site(kind, operator, f"{kind}_{name}", file, 1, "CPU" if kind is SiteKind.KERNEL else "")


SITES = Sites(
    [
        site(SiteKind.SCHEMA, "aten::add.Tensor", "Schema.cpp"),
        site(SiteKind.SCHEMA, "aten::add.Scalar", "Schema.cpp"),
        site(SiteKind.KERNEL, "aten::add.Tensor", "CPU.cpp"),
        site(SiteKind.SCHEMA, "aten::mul", "Schema.cpp"),
        site(SiteKind.INTERPRETER, "aten::len.t", "prim.cpp"),
        site(SiteKind.INTERPRETER, "aten::dim", "prim.cpp"),
        site(SiteKind.PROMOTED, "aten::dim", "promoted.cpp"),
    ]
)


def model(*names: str, all_overloads: bool = False, format_: str = "lite") -> ModelNeeds:
    use = (Use("forward", "here"),)
    roots = tuple(RootOperator(OperatorName.parse(name), all_overloads, Reach.DISPATCHER, use) for name in names)
    return ModelNeeds("m.ptl", format_, "f", roots, ("forward",), ())


def extra(name: str, all_overloads: bool = False) -> ExtraOperator:
    return ExtraOperator(OperatorName.parse(name), all_overloads, "--op")


def test_every_registration_that_a_name_finds_is_a_root_but_kernels_come_by_themselves() -> None:
    found = wanted([model("aten::add.Tensor", "aten::dim")], [], SITES)
    assert found.symbols == ("interpreter_aten::dim", "promoted_aten::dim", "schema_aten::add.Tensor")
    assert found.sources == ("Schema.cpp", "prim.cpp", "promoted.cpp")
    assert found.left_out == ()
    assert found.scopes == ("inference",)


def test_a_base_name_means_all_overloads() -> None:
    found = wanted([model("aten::add", all_overloads=True)], [extra("aten::len", True)], SITES)
    assert [str(root.name) for root in found.roots] == ["aten::add.Scalar", "aten::add.Tensor", "aten::len.t"]


def test_what_the_tree_lacks_is_missing_for_a_model_and_an_error_for_the_user() -> None:
    found = wanted([model("aten::add.Tensor", "aten::newer")], [], SITES)
    assert [str(root.name) for root in found.missing] == ["aten::newer"]
    with pytest.raises(UnknownOperator, match=r"aten::add\.Scalar, aten::add\.Tensor"):
        wanted([], [extra("aten::add.Other")], SITES)


def test_the_traced_policy_leaves_out_every_other_operator_of_the_dispatcher() -> None:
    found = wanted([model("aten::add.Tensor")], [extra("aten::len.t")], SITES, Policy.TRACED)
    assert found.left_out == ("schema_aten::add.Scalar", "schema_aten::mul")


def test_kernels_for_other_tensors_than_those_of_the_scopes_are_left_out() -> None:
    operator = OperatorName.parse("aten::mul")
    keys = ("CPU", "CompositeExplicitAutograd", "SparseCPU", "QuantizedCPU", "BackendSelect")
    kernels = [Site(SiteKind.KERNEL, operator, key, "k.cpp", 1, key) for key in keys]
    sites = Sites([*SITES.all, *kernels])
    assert wanted([], [], sites).left_out == ("CompositeExplicitAutograd", "QuantizedCPU", "SparseCPU")
    assert "SparseCPU" not in wanted([], [], sites, scopes=frozenset({Scope.INFERENCE, Scope.SPARSE})).left_out
    quantized = ModelNeeds("m", "lite", "f", (), (), ("__torch__.torch.classes.quantized.Linear",))
    assert wanted([quantized], [], sites).left_out == ("CompositeExplicitAutograd", "SparseCPU")


def test_models_that_an_interpreter_cannot_load() -> None:
    require_loadable([model("aten::mul")], Interpreter.LITE)
    require_loadable([model("aten::mul", format_="torchscript")], Interpreter.FULL)
    with pytest.raises(InvalidModel, match="--interpreter full"):
        require_loadable([model("aten::mul", format_="torchscript")], Interpreter.LITE)
    with pytest.raises(InvalidModel, match="slim PyTorch"):
        require_loadable([model("aten::mul", format_="export")], Interpreter.FULL)


def test_packed_weights_need_an_engine() -> None:
    packed = replace(model("aten::mul"), custom_classes=("__torch__.torch.classes.quantized.LinearPackedParamsBase",))
    for quantized in (model("quantized::conv2d_prepack"), model("quantized::linear_dynamic"), packed):
        require_engine([quantized], QuantizedEngine.QNNPACK)
        with pytest.raises(InvalidModel, match="--quantized-engine qnnpack"):
            require_engine([model("aten::mul"), quantized], QuantizedEngine.NONE)


def test_what_no_engine_runs_needs_none() -> None:
    embedding = "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"
    models = [model("aten::conv2d"), model("quantized::add"), replace(model(), custom_classes=(embedding,))]
    require_engine(models, QuantizedEngine.NONE)
