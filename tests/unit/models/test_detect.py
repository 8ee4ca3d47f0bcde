from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models import read_model
from opsieve.models.archive import open_archive
from opsieve.models.detect import Format, archive_format, container_format

from .files import BRANCHES, EVERYTHING, LITE, LITE_FLATBUFFER, WEIGHTS, write


@pytest.mark.parametrize(
    ("path", "expected"),
    [(EVERYTHING, Format.TORCHSCRIPT), (LITE, Format.LITE), (BRANCHES, Format.EXPORT)],
)
def test_archives_are_told_apart_by_their_members(path: Path, expected: Format) -> None:
    assert container_format(path) is None
    with open_archive(path) as archive:
        assert archive_format(archive) is expected


def test_a_flatbuffer_is_told_by_its_header() -> None:
    assert container_format(LITE_FLATBUFFER) is Format.LITE_FLATBUFFER


def test_the_name_of_the_file_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(EVERYTHING.read_bytes())
    assert read_model(tmp_path / "model.onnx").format == "torchscript"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "the file is empty"),
        (b"\x40\x02\0\0\0\0\0\0" + b'{"weight":{"dtype":"F32"', "a safetensors file"),
        (b"\x08\x07\x12\x07pytorch\x1a\x052.1.0", "an ONNX model"),
        (b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.", "before PyTorch 1.6"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"\x93NUMPY\x01\0", "a NumPy array"),
        (b"GGUF\x03\0\0\0", "a GGUF file"),
        (b"\x20\0\0\0TFL3", "a TensorFlow Lite model"),
        (b"\x20\0\0\0ET12", "an ExecuTorch program"),
        (b"\x7fELF\x02\x01", "a shared library"),
        (b"\x1f\x8b\x08\0", "compressed with gzip"),
        (b"import torch\n", "no model that we know"),
    ],
)
def test_other_files_are_recognised_and_refused_with_advice(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InvalidModel) as caught:
        read_model(tmp_path / "file")
    assert what in caught.value.problem
    assert caught.value.remedy
    assert "torch.export" in str(caught.value.expected)


def test_a_state_dict_is_told_what_it_is() -> None:
    with pytest.raises(InvalidModel, match="not the code that uses them") as caught:
        read_model(WEIGHTS)
    assert "torch.jit.script(model).save" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("members", "what"),
    [
        ({"data/aotinductor/model/x.so": ""}, "AOTInductor"),
        ({".data/ts_code/0/data.pkl": ""}, "torch.package"),
        ({"arr_0.npy": ""}, "NumPy"),
        ({"readme.txt": ""}, "holds no model"),
        ({"code/x.py": "", "model.json": "{}"}, "PyTorch 1.0"),
        ({}, "holds no model"),
    ],
)
def test_other_archives_are_recognised(tmp_path: Path, members: dict[str, str], what: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        read_model(write(tmp_path / "m", members))
    assert what in caught.value.problem
    assert caught.value.remedy
