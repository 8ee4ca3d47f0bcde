"""Everything that a model would miss on a runtime is told at once, and nothing else."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from opsieve.cli.main import run
from opsieve.errors import InvalidFile
from opsieve.models import ModelNeeds, Reach, RootOperator, Use, read_model
from opsieve.operators import OperatorName
from opsieve.runtimes.source.capabilities import (
    CAPABILITIES,
    SCHEMA,
    Capabilities,
    capabilities_to_json,
)
from opsieve.runtimes.source.options import Interpreter
from opsieve.runtimes.source.wanted import Policy
from opsieve.select.selection import (
    ModelIdentity,
    Reason,
    ReasonKind,
    RuntimeIdentity,
    SelectedOperator,
    Selection,
)
from opsieve.select.store import selection_to_json
from opsieve.verify.check import Finding, Lack, ModelCheck, When, check, read_runtime
from tests.unit.models.files import script_members, write
from tests.unit.models.test_lite import function

SOURCE = Capabilities(SCHEMA, "2.6.0", Interpreter.LITE, Policy.STATIC, (4, 9), (1, 10), None, ("dPackedParamsBase",))


def selected(*names: str) -> tuple[SelectedOperator, ...]:
    reasons = (Reason(ReasonKind.OPTION, "--op"),)
    return tuple(SelectedOperator(OperatorName.parse(name), reasons) for name in sorted(names))


def runtime(
    folder: Path,
    *names: str,
    capabilities: Capabilities | None = SOURCE,
    missing: tuple[str, ...] = (),
    models: tuple[ModelIdentity, ...] = (),
    scopes: tuple[str, ...] = ("inference", "quantized"),
) -> Path:
    folder.mkdir()
    selection = Selection(RuntimeIdentity("2.6.0", "id"), scopes, models, selected(*names), selected(*missing))
    (folder / "selection.json").write_bytes(selection_to_json(selection))
    if capabilities is not None:
        (folder / CAPABILITIES).write_bytes(capabilities_to_json(capabilities))
        (folder / "command.txt").write_text("opsieve build 'a b.ptl' --runtime source -o out\n")
    return folder


def lite(path: Path, *names: str, version: int = 8, types: tuple[str, ...] = (), data: bytes = b"\x80\x02N.") -> Path:
    operators = tuple((name.partition(".")[0], name.partition(".")[2]) for name in names)
    calls = tuple(("OP", number, 0) for number in range(len(names)))
    code = (version, function(instructions=(*calls, ("RET", 0, 0)), operators=operators, types=types))
    return write(path, {"bytecode.pkl": pickle.dumps(code, 2), "data.pkl": data, "version": "10"})


def checked(model: Path, folder: Path) -> ModelCheck:
    return check([read_model(model)], read_runtime(folder))[0]


def test_nothing_is_missing(tmp_path: Path) -> None:
    model = lite(tmp_path / "m.ptl", "aten::relu", "aten::add.Tensor")
    found = checked(model, runtime(tmp_path / "out", "aten::relu", "aten::add.Tensor", "aten::mul.Tensor"))
    assert (found.findings, found.notes) == ((), ())


def test_all_operators_that_are_missing(tmp_path: Path) -> None:
    model = lite(tmp_path / "m.ptl", "aten::relu", "aten::add.Tensor", "my::op")
    found = checked(model, runtime(tmp_path / "out", "aten::add.Scalar", missing=("my::op",)))
    assert [(f.kind, f.name, f.when) for f in found.findings] == [
        (Lack.FOREIGN, "my::op", When.LOAD),
        (Lack.OPERATOR, "aten::add.Tensor", When.LOAD),
        (Lack.OPERATOR, "aten::relu", When.LOAD),
    ]
    assert found.findings[1].used_by == ("__torch__.Net.forward",)


@pytest.mark.parametrize(("version", "missing"), [(3, 1), (4, 0), (9, 0)])
def test_a_version_that_the_runtime_does_not_load(tmp_path: Path, version: int, missing: int) -> None:
    found = checked(lite(tmp_path / "m.ptl", "aten::relu", version=version), runtime(tmp_path / "out", "aten::relu"))
    assert [f.kind for f in found.findings] == [Lack.VERSION] * missing


def test_a_version_that_is_too_new(tmp_path: Path) -> None:
    old = msgspec.structs.replace(SOURCE, bytecode=(4, 7))
    folder = runtime(tmp_path / "out", "aten::relu", capabilities=old)
    (found,) = checked(lite(tmp_path / "m.ptl", "aten::relu"), folder).findings
    assert (found.name, found.problem) == ("bytecode 8", "PyTorch 2.6.0 loads 4 to 7")
    assert "_backport_for_mobile(FILE, OUT, 7)" in found.remedy


def test_a_script_needs_the_full_interpreter(tmp_path: Path) -> None:
    model = write(tmp_path / "m.pt", script_members(version=11))
    lite_one = runtime(tmp_path / "lite", "aten::relu")
    assert [f.kind for f in checked(model, lite_one).findings] == [Lack.FORMAT]
    full = msgspec.structs.replace(SOURCE, interpreter=Interpreter.FULL)
    (found,) = checked(model, runtime(tmp_path / "full", "aten::relu", capabilities=full)).findings
    assert (found.kind, found.name) == (Lack.VERSION, "file format 11")


def test_a_kind_of_tensor_without_kernels(tmp_path: Path) -> None:
    model = lite(tmp_path / "m.ptl", "quantized::add")
    (found,) = checked(model, runtime(tmp_path / "out", "quantized::add", scopes=("inference",))).findings
    assert (found.kind, found.name, found.option) == (Lack.SCOPE, "quantized", ("--scope", "quantized"))
    for number, scopes in enumerate([("inference", "quantized"), ("all",)]):
        assert checked(model, runtime(tmp_path / str(number), "quantized::add", scopes=scopes)).findings == ()


def test_custom_classes(tmp_path: Path) -> None:
    types = ("__torch__.torch.classes.quantized.Conv2dPackedParamsBase", "__torch__.torch.classes.my.Thing")
    model = lite(tmp_path / "m.ptl", "aten::relu", types=types)
    (found,) = checked(model, runtime(tmp_path / "out", "aten::relu")).findings
    assert (found.kind, found.name) == (Lack.CLASS, "__torch__.torch.classes.my.Thing")


def test_dtypes_of_weights(tmp_path: Path) -> None:
    data = b"\x80\x02(ctorch\nHalfStorage\nctorch\nFloatStorage\nt."
    model = lite(tmp_path / "m.ptl", "aten::relu", data=data)
    few = msgspec.structs.replace(SOURCE, dtypes=("Float", "Long"))
    (found,) = checked(model, runtime(tmp_path / "out", "aten::relu", capabilities=few)).findings
    assert (found.kind, found.name, found.when) == (Lack.DTYPE, "Half", When.RUN)
    assert found.option == ("--dtypes", "Float,Half,Long")


def test_a_traced_runtime_warns_of_what_it_cannot_tell(tmp_path: Path) -> None:
    model = lite(tmp_path / "m.ptl", "aten::relu")
    traced = msgspec.structs.replace(SOURCE, policy=Policy.TRACED)
    other = checked(model, runtime(tmp_path / "other", "aten::relu", capabilities=traced))
    assert ["keeps only the operators" in note for note in other.notes] == [True]
    known = (ModelIdentity("elsewhere.ptl", "lite", read_model(model).fingerprint),)
    own = checked(model, runtime(tmp_path / "own", "aten::relu", capabilities=traced, models=known))
    assert own.notes == ()


def test_a_model_that_changed_is_told(tmp_path: Path) -> None:
    model = lite(tmp_path / "m.ptl", "aten::relu")
    known = (ModelIdentity(str(model), "lite", "another"),)
    found = checked(model, runtime(tmp_path / "out", "aten::relu", models=known))
    assert found.notes == ("The model has changed since the runtime was built for it.",)


def needs(name: str, *, all_overloads: bool = False, reach: Reach = Reach.DISPATCHER, path: Path) -> ModelNeeds:
    root = RootOperator(OperatorName.parse(name), all_overloads, reach, (Use("forward", "code:1"),))
    return ModelNeeds(str(path), "torchscript", "f", (root,), (), ())


def test_one_of_all_overloads_will_do_but_is_told(tmp_path: Path) -> None:
    model = write(tmp_path / "m.pt", script_members())
    folder = read_runtime(runtime(tmp_path / "out", "aten::add.Tensor", capabilities=None))
    (some,) = check([needs("aten::add", all_overloads=True, path=model)], folder)
    assert (some.findings, len(some.notes)) == ((), 1)
    (none,) = check([needs("aten::mul", all_overloads=True, path=model)], folder)
    assert [f.option for f in none.findings] == [("--op", "aten::mul")]


def test_a_wheel_keeps_the_interpreters_own_operators(tmp_path: Path) -> None:
    model = write(tmp_path / "m.pt", script_members())
    wheel = read_runtime(runtime(tmp_path / "wheel", capabilities=None))
    own = needs("prim::data", reach=Reach.INTERPRETER, path=model)
    assert check([own], wheel)[0].findings == ()
    full = msgspec.structs.replace(SOURCE, interpreter=Interpreter.FULL)
    source = read_runtime(runtime(tmp_path / "source", capabilities=full))
    assert [f.name for f in check([own], source)[0].findings] == ["prim::data"]


def test_the_command_that_adds_everything(tmp_path: Path) -> None:
    facts = read_runtime(runtime(tmp_path / "out"))
    relu = Finding(Lack.OPERATOR, "aten::relu", When.LOAD, "", option=("--op", "aten::relu"))
    version = Finding(Lack.VERSION, "bytecode 3", When.LOAD, "")
    both = [ModelCheck("one.ptl", "lite", (relu,)), ModelCheck("two.ptl", "lite", (relu, version))]
    expected = "opsieve build 'a b.ptl' --runtime source -o out --op aten::relu --force"
    assert facts.rebuild(both) == expected
    assert facts.rebuild([ModelCheck("one.ptl", "lite", (version,))]) is None
    assert replace(facts, command=()).rebuild(both) == "opsieve build ... --op aten::relu --force"


def test_of_many_operators_the_model_is_named(tmp_path: Path) -> None:
    many = tuple(Finding(Lack.OPERATOR, name, When.LOAD, "", option=("--op", name)) for name in "abcde")
    scope = Finding(Lack.SCOPE, "quantized", When.RUN, "", option=("--scope", "quantized"))
    check_of_many = ModelCheck("my model.ptl", "lite", (*many, scope))
    expected = "opsieve build ... --scope quantized 'my model.ptl' --force"
    assert replace(read_runtime(runtime(tmp_path / "out")), command=()).rebuild([check_of_many]) == expected


def test_another_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match="no runtime"):
        read_runtime(tmp_path)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runtime(tmp_path / "out", "aten::relu")
    good, bad = (
        lite(tmp_path / "good.ptl", "aten::relu"),
        lite(tmp_path / "bad.ptl", "aten::quite_a_long_name.overload"),
    )
    assert run(["check", str(good), "--against", str(folder)]) == 0
    assert capsys.readouterr().out == f"{good}: nothing is missing\n"
    assert run(["check", str(good), str(bad), "--against", str(folder)]) == 1
    printed = capsys.readouterr().out.replace(str(bad), "bad.ptl")
    assert "bad.ptl: 1 thing missing" in printed
    assert "--op aten::quite_a_long_name.overload --force" in printed
    table = printed[printed.index("missing  ") : printed.index("To add")]
    assert max(map(len, table.splitlines())) <= 80
    assert run(["check", str(bad), "--against", str(tmp_path)]) == 2


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = runtime(tmp_path / "out", "aten::relu")
    bad = lite(tmp_path / "bad.ptl", "aten::relu", "aten::tanh")
    assert run(["check", str(bad), "--against", str(folder), "--format", "json"]) == 1
    (model,) = json.loads(capsys.readouterr().out)["models"]
    assert [(item["kind"], item["name"], item["fails_at"]) for item in model["missing"]] == [
        ("operator", "aten::tanh", "load")
    ]
