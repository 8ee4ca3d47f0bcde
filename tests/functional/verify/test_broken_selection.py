"""The command on real builds: a right selection passes, one that lacks an operator does not."""

import json
from dataclasses import replace

import pytest

from opsieve.cli.main import run
from opsieve.installed import find_torch
from opsieve.models import TorchOverloads, read_model
from opsieve.runtimes.wheel.build import BuildRequest, build, keep_for, plan_build
from opsieve.runtimes.wheel.roots import loaded_libraries

pytestmark = pytest.mark.torch
QUICK = ["--shape", "2,8", "--calls", "1", "--this-processor"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    import torch

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).eval()
    path = tmp_path_factory.mktemp("model") / "net.pt"
    torch.jit.script(net).save(path)
    return path


@pytest.fixture(scope="module")
def plan(model):
    install = find_torch()
    return plan_build(install, BuildRequest([read_model(model, overloads=TorchOverloads(install))], wheel=False))


def verify_json(capsys, *arguments):
    status = run(["verify", *map(str, arguments), *QUICK, "--format", "json"])
    return status, json.loads(capsys.readouterr().out)


def test_a_right_selection_is_proved_for_the_models_it_records(plan, model, tmp_path, capsys):
    build(plan, tmp_path / "slim")
    status, told = verify_json(capsys, tmp_path / "slim")
    assert status == 0
    assert told["identical"] is True
    (verified,) = told["models"]
    assert verified["path"] == str(model)
    assert list(verified["counts"]) == ["identical"]
    assert not list((tmp_path / "slim").rglob("__pycache__")), "verify writes nothing into the slim package"


def test_a_selection_without_a_needed_operator_fails_and_says_how_to_add_it(plan, model, tmp_path, capsys):
    operators = tuple(operator for operator in plan.selection.operators if operator.name.base != "relu")
    assert len(operators) < len(plan.selection.operators)
    broken = replace(plan.selection, operators=operators)
    kept = keep_for(plan.install, plan.kept.graph, broken, (), lambda: loaded_libraries(plan.install))
    build(replace(plan, selection=broken, kept=kept), tmp_path / "slim")
    status, told = verify_json(capsys, tmp_path / "slim", "--model", model)
    assert status == 1
    assert told["identical"] is False
    given = [v for v in told["models"][0]["variations"] if v["inputs"] == "as given"]
    assert {v["verdict"] for v in given} == {"left out"}
    assert all("aten::relu is not in this" in v["reason"] for v in given)
    assert all("--op aten::relu" in v["reason"] for v in given)


def test_wrong_usage_ends_with_2(plan, model, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "inputs.pt").touch()
    assert run(["verify", str(tmp_path / "empty"), "--model", str(model), *QUICK]) == 2
    assert run(["verify", str(tmp_path / "empty"), "--inputs", str(tmp_path / "inputs.pt"), *QUICK]) == 2
    assert run(["verify", str(tmp_path / "empty"), "--shape", "nonsense"]) == 2
    printed = capsys.readouterr().err
    assert "no slim PyTorch" in printed
    assert "either --inputs or --shape" in printed
    assert "nonsense" in printed
