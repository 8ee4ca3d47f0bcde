"""What a model file says of its format's version and of its weights' dtypes."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models.demands import ModelDemands, read_demands

from .files import EVERYTHING, LITE, LITE_FLATBUFFER, script_members, write
from .test_lite import function


def test_lite_models_have_a_version_of_bytecode(tmp_path: Path) -> None:
    content = {"bytecode.pkl": pickle.dumps((6, function()), 2), "version": "10"}
    assert read_demands(write(tmp_path / "m.ptl", content)) == ModelDemands(6, None)


def test_scripts_have_a_version_of_the_file(tmp_path: Path) -> None:
    assert read_demands(write(tmp_path / "m.pt", script_members(version=7))) == ModelDemands(None, 7)


def test_weights_have_dtypes(tmp_path: Path) -> None:
    members = script_members()
    data = b"\x80\x02(ctorch\nHalfStorage\nctorch\nLongStorage\nctorch\nHalfStorage\nt."
    assert read_demands(write(tmp_path / "m.pt", {**members, "data.pkl": data})).dtypes == {"Half", "Long"}


@pytest.mark.parametrize("path", [LITE, LITE_FLATBUFFER], ids=["zip", "flatbuffer"])
def test_of_what_pytorch_wrote(path: Path) -> None:
    found = read_demands(path)
    assert found.bytecode in range(4, 10)
    assert found.file_format is None


def test_of_a_script_that_pytorch_wrote() -> None:
    assert read_demands(EVERYTHING).file_format == 3  # PyTorch writes the oldest version that will do


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "m.pt").write_bytes(b"nothing of the kind")
    with pytest.raises(InvalidModel):
        read_demands(tmp_path / "m.pt")
