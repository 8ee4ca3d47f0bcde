from pathlib import Path

import pytest

from opsieve.errors import InvalidFile
from opsieve.operators import OperatorName
from opsieve.select.selection import ModelIdentity, Reason, ReasonKind, RuntimeIdentity, SelectedOperator, Selection
from opsieve.select.store import selection_to_json
from opsieve.verify.recorded import models_of, slim_torch


def record(build, *models):
    selection = Selection(
        RuntimeIdentity("2.13.0+cpu", "abc"),
        ("inference",),
        tuple(ModelIdentity(str(model), "torchscript", "zip-crc:1") for model in models),
        (SelectedOperator(OperatorName("aten", "relu"), (Reason(ReasonKind.MODEL, "m.pt", "forward"),)),),
    )
    (build / "selection.json").write_bytes(selection_to_json(selection))


def test_the_models_that_a_build_was_made_for(tmp_path):
    models = [tmp_path / "a.pt", tmp_path / "b.pt2"]
    for model in models:
        model.touch()
    record(tmp_path, *models)
    assert models_of(tmp_path) == tuple(models)


def test_a_model_that_has_gone_is_told_with_the_way_out(tmp_path):
    record(tmp_path, tmp_path / "gone.pt")
    with pytest.raises(InvalidFile, match=r"gone\.pt") as caught:
        models_of(tmp_path)
    assert "--model" in (caught.value.remedy or "")


def test_a_folder_without_a_selection_is_refused(tmp_path):
    with pytest.raises(InvalidFile, match=r"selection\.json"):
        models_of(tmp_path)


def test_the_slim_torch_of_a_build(tmp_path):
    (tmp_path / "python/torch").mkdir(parents=True)
    with pytest.raises(InvalidFile, match="no slim PyTorch"):
        slim_torch(tmp_path, Path("python3"))
    (tmp_path / "python/torch/version.py").write_text("__version__ = '2.13.0+cpu.opsieve.h1'\n")
    torch = slim_torch(tmp_path, Path("python3"))
    assert torch.version == "2.13.0+cpu.opsieve.h1"
    assert torch.site == tmp_path / "python"
