"""Quantized models in runtimes with QNNPACK give, bit for bit, what the installed PyTorch gives with that engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.ao import quantization

from opsieve.cli.main import run
from opsieve.runtimes.source.doctor import diagnose
from opsieve.runtimes.source.packages import Need
from opsieve.runtimes.source.tree import SourceTree
from tests.functional.runtimes.source.built import Model, Runtime, build, save_lite, strings_of

_HEADERS = {f"{need} headers" for need in (Need.PTHREADPOOL, Need.FP16, Need.FXDIV, Need.PSIMD)}
_MISSING = sorted(check.name for check in diagnose().checks if check.name in _HEADERS and not check.ok)

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("kept_objects", "engine"),
    pytest.mark.skipif(bool(_MISSING), reason=f"QNNPACK needs {', '.join(_MISSING)}"),
    pytest.mark.skipif(
        "qnnpack" not in torch.backends.quantized.supported_engines, reason="this PyTorch has no QNNPACK"
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning"),
]


@pytest.fixture(scope="module")
def engine() -> Iterator[None]:
    """The installed PyTorch computes with QNNPACK too, where packed weights are made and where they are used."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.backends.quantized, "engine", "qnnpack")
        yield


def convolution(inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
    layer = nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False)
    return nn.Sequential(layer, nn.BatchNorm2d(outputs), nn.ReLU())


class Block(nn.Module):
    """An inverted residual, as MobileNetV2 has them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.expand = convolution(inputs, 4 * inputs, 1)
        self.depthwise = convolution(4 * inputs, 4 * inputs, 3, stride, 4 * inputs)
        self.project = nn.Sequential(nn.Conv2d(4 * inputs, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.sum = torch.ao.nn.quantized.FloatFunctional()
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return self.sum.add(x, y) if self.residual else y


class SmallMobileNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = quantization.QuantStub(), quantization.DeQuantStub()
        self.features = nn.Sequential(
            convolution(3, 16, 3, 2), Block(16, 16, 1), Block(16, 24, 2), Block(24, 24, 1), convolution(24, 64, 1)
        )
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(self.features(self.quant(x)))
        return self.dequant(self.classifier(torch.flatten(x, 1)))


def quantized_mobilenet() -> nn.Module:
    module = SmallMobileNet().eval()
    for part in list(module.modules()):
        if isinstance(part, nn.Sequential) and isinstance(part[0], nn.Conv2d):
            quantization.fuse_modules(part, [str(index) for index in range(len(part))], inplace=True)
    module.qconfig = quantization.get_default_qconfig("qnnpack")
    quantization.prepare(module, inplace=True)
    for _ in range(3):
        module(torch.randn(2, 3, 64, 64))
    return quantization.convert(module)


@pytest.fixture(scope="module")
def mobilenet(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    return save_lite(quantized_mobilenet(), tmp_path_factory.mktemp("models"), "quantized_mobilenet")


@pytest.fixture(scope="module")
def dynamic(engine: None, tmp_path_factory: pytest.TempPathFactory) -> Model:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
    quantized = quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
    return save_lite(quantized, tmp_path_factory.mktemp("models"), "dynamic")


@pytest.fixture
def build_quantized(source_tree: SourceTree, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def made(model: Model) -> Runtime:
        return build([model.path], source_tree.root, tmp_path / "out", capsys, "--quantized-engine", "qnnpack")

    return made


def packed_weights(runtime: Runtime) -> set[str]:
    """The classes of packed weights in a program, by the names of their type information."""
    names = strings_of(runtime.program, r"\d+Packed(?:Conv|Linear|Embedding)\w+")
    return {name.lstrip("0123456789") for name in names}


def test_a_quantized_mobilenet_gives_the_answers_of_the_installed_pytorch(
    build_quantized: Any, mobilenet: Model, tmp_path: Path
) -> None:
    runtime = build_quantized(mobilenet)
    for shape in ((1, 3, 64, 64), (3, 3, 96, 80)):
        for threads in ("1", "2"):
            assert runtime.difference(mobilenet, torch.randn(shape), tmp_path, "--threads", threads) == 0
    assert {"quantized::conv2d_relu.new", "quantized::add", "quantized::linear"} <= runtime.operators
    assert packed_weights(runtime) == {"PackedConvWeightsQnnpILi2EE", "PackedLinearWeightsQnnp"}


def test_dynamically_quantized_layers_do_too(build_quantized: Any, dynamic: Model, tmp_path: Path) -> None:
    runtime = build_quantized(dynamic)
    assert runtime.difference(dynamic, torch.randn(5, 16), tmp_path) == 0
    assert packed_weights(runtime) == {"PackedLinearWeightsQnnp"}


def test_without_an_engine_the_model_is_refused(
    source_tree: SourceTree, dynamic: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["build", str(dynamic.path), "--runtime", "source", "--source", str(source_tree.root)]
    assert run([*words, "-o", str(tmp_path / "out")]) == 2
    assert "--quantized-engine qnnpack" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
