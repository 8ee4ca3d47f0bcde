"""Models in flatbuffer form: the runtime loads them, and holds the same operators as for the same model in a zip."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from benchmarks.models import MobileNetV2, lively

from opsieve.models import read_model
from opsieve.runtimes.source.doctor import diagnose
from opsieve.runtimes.source.tree import SourceTree
from tests.functional.runtimes.source.built import Model, Runtime, build, save_lite

_MISSING = sorted(check.name for check in diagnose().checks if check.name.startswith("flat") and not check.ok)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("kept_objects"),
    pytest.mark.skipif(bool(_MISSING), reason=f"flatbuffer models need {', '.join(_MISSING)}, all of one release"),
]

SMALL = 1e-5
"""Relative to the largest answer: sums are taken in another order than with oneDNN."""


@pytest.fixture(scope="module")
def in_zip(tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    return save_lite(lively(MobileNetV2()), tmp_path_factory.mktemp("models"), "mobilenet_v2")


@pytest.fixture(scope="module")
def in_flatbuffer(tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    return save_lite(lively(MobileNetV2()), tmp_path_factory.mktemp("models"), "mobilenet_v2_flat", flatbuffer=True)


@pytest.fixture(scope="module")
def built() -> list[Runtime]:
    """The runtime, once a test has asked for it."""
    return []


@pytest.fixture
def runtime(
    built: list[Runtime],
    source_tree: SourceTree,
    in_flatbuffer: Model,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Runtime:
    if not built:
        built.append(build([in_flatbuffer.path], source_tree.root, tmp_path / "out", capsys))
    return built[0]


def test_a_runtime_loads_both_forms_and_gives_the_same_answers(
    runtime: Runtime, in_zip: Model, in_flatbuffer: Model, tmp_path: Path
) -> None:
    assert not runtime.report["left_out"]
    assert read_model(in_flatbuffer.path).format == "lite-flatbuffer"
    for model in (in_flatbuffer, in_zip):
        for shape in ((1, 3, 224, 224), (2, 3, 160, 192)):
            assert runtime.difference(model, torch.randn(shape), tmp_path) < SMALL


def test_the_form_makes_no_difference_to_the_operators(
    runtime: Runtime, source_tree: SourceTree, in_zip: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = build([in_zip.path], source_tree.root, tmp_path / "other", capsys)
    assert other.operators == runtime.operators
    assert other.report["compiled"] == 0


def test_a_model_that_is_cut_off_is_an_error(runtime: Runtime, in_flatbuffer: Model, tmp_path: Path) -> None:
    whole = in_flatbuffer.path.read_bytes()
    cut = tmp_path / "cut.ptl"
    cut.write_bytes(whole[: len(whole) // 2])
    assert runtime(cut, "--shape", "1,3,32,32", status=1).startswith("error: ")
