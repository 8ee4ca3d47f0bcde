"""Runtimes from real source: MobileNetV2 and a recurrent model, built, run, compared with the installed PyTorch.

The first test compiles for about ten minutes if nothing is there from an earlier run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from benchmarks.models import MobileNetV2, RecurrentClassifier, TransformerClassifier, lively

from opsieve.runtimes.source.tree import SourceTree
from tests.functional.runtimes.source.built import Model, Runtime, build, save_lite, strings_of

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("kept_objects")]

SMALL = 1e-5
"""Relative to the largest answer: sums are taken in another order than with oneDNN."""


class Built:
    """Runtimes by the words that made them; each is built once."""

    def __init__(self, tree: SourceTree, folder: Path) -> None:
        self.tree = tree
        self.folder = folder
        self.runtimes: dict[tuple[str, ...], Runtime] = {}

    def __call__(self, model: Model, capsys: Any, *options: str) -> Runtime:
        key = (model.path.name, *options)
        if key not in self.runtimes:
            folder = self.folder / str(len(self.runtimes))
            self.runtimes[key] = build([model.path], self.tree.root, folder, capsys, *options)
        return self.runtimes[key]


@pytest.fixture(scope="module")
def built(source_tree: SourceTree, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(source_tree, tmp_path_factory.mktemp("runtimes"))


@pytest.fixture(scope="module")
def mobilenet(tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    return save_lite(lively(MobileNetV2()), tmp_path_factory.mktemp("models"), "mobilenet_v2")


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    return save_lite(RecurrentClassifier(), tmp_path_factory.mktemp("models"), "recurrent")


def test_a_runtime_gives_the_answers_of_the_installed_pytorch(
    built: Built, mobilenet: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = built(mobilenet, capsys)
    for shape in ((1, 3, 224, 224), (2, 3, 224, 224), (1, 3, 160, 192)):
        for threads in ("1", "2"):
            given = torch.randn(shape)
            assert runtime.difference(mobilenet, given, tmp_path, "--threads", threads) < SMALL


def test_it_holds_what_the_model_needs_and_nothing_else(
    built: Built, mobilenet: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = built(mobilenet, capsys)
    assert {"aten::conv2d", "aten::hardtanh", "aten::_slow_conv2d_forward", "aten::len.t"} <= runtime.operators
    # Schemas stand in the program as text, with their brackets.
    schemas = strings_of(runtime.program, r"(?<![\w:.])(?:aten::)?[a-z_0-9]+(?:\.[A-Za-z_0-9]+)?\((?:Tensor|int|float)")
    kept = {name.partition("::")[2] for name in runtime.operators}
    assert {text.partition("(")[0].removeprefix("aten::") for text in schemas} <= kept
    assert runtime.program.stat().st_size <= 5_200_000


def test_the_folder_says_what_it_is(built: Built, mobilenet: Model, capsys: pytest.CaptureFixture[str]) -> None:
    runtime = built(mobilenet, capsys)
    selection = json.loads((runtime.folder / "selection.json").read_text())
    assert {"roots.rsp", "sizes.txt", "command.txt", "selected_operators.yaml"} <= {
        path.name for path in runtime.folder.iterdir()
    }
    assert len(selection["selection"]["operators"]) == len(runtime.operators)
    assert (runtime.folder / "lib/libopsieve_torch.a").is_file()


def test_wrong_input_is_refused_in_the_words_of_the_installed_pytorch(
    built: Built, mobilenet: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    runtime = built(mobilenet, capsys)
    said = runtime(mobilenet.path, "--shape", "1,4,64,64", status=1)
    with pytest.raises(RuntimeError) as stock:
        mobilenet.answer(torch.randn(1, 4, 64, 64))
    words = str(stock.value).strip().splitlines()[-1].removeprefix("RuntimeError: ")
    assert words in said


def test_another_model_compiles_only_what_it_needs_beside(
    built: Built, mobilenet: Model, recurrent: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    built(mobilenet, capsys)
    runtime = built(recurrent, capsys)
    assert runtime.report["compiled"] < 60
    assert "aten::lstm.input" in runtime.operators
    tokens = torch.randint(0, 1000, (3, 17))
    assert runtime.difference(recurrent, tokens, tmp_path) < SMALL


def test_a_transformer(built: Built, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch.manual_seed(0)
    model = save_lite(TransformerClassifier(), tmp_path, "transformer")
    runtime = built(model, capsys)
    for shape in ((1, 8), (3, 40)):
        assert runtime.difference(model, torch.randint(0, 1000, shape), tmp_path) < SMALL


def test_a_model_for_which_operators_are_missing_says_so_and_how_to_add_them(
    built: Built, mobilenet: Model, recurrent: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    said = built(mobilenet, capsys)(recurrent.path, "--shape", "1,5", "--dtype", "long", status=1)
    assert "aten::lstm.input" in said
    assert "--op aten::lstm.input" in said


def test_with_everything_compiled_nothing_is_compiled_again(
    built: Built, mobilenet: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = built(mobilenet, capsys)
    again = build([mobilenet.path], built.tree.root, tmp_path / "again", capsys)
    assert again.report["compiled"] == 0
    assert again.operators == first.operators
    assert again.program.read_bytes() == first.program.read_bytes()


def test_both_exact_linkers_keep_the_same_operators(
    built: Built, mobilenet: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gnu = built(mobilenet, capsys, "--linker", "bfd", "--icf", "none")
    assert gnu.operators == built(mobilenet, capsys).operators
    assert gnu.difference(mobilenet, torch.randn(1, 3, 64, 64), tmp_path) < SMALL


def test_the_traced_policy_leaves_out_what_is_not_named(
    built: Built, mobilenet: Model, capsys: pytest.CaptureFixture[str]
) -> None:
    static, traced = built(mobilenet, capsys), built(mobilenet, capsys, "--policy", "traced")
    assert traced.operators < static.operators
    assert traced.program.stat().st_size < static.program.stat().st_size
    said = traced(mobilenet.path, "--shape", "1,3,32,32", status=1)
    assert "--op aten::" in said
