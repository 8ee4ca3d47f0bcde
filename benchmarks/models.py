"""The models that are measured: architectures of four kinds, and a published model with its own weights.

Weights of the first three are random, from a fixed seed: neither sizes nor operators depend on them.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

SEED = 20


@dataclass(frozen=True, slots=True)
class Sample:
    """A model in a file, and the arguments of `opsieve verify` that describe its inputs."""

    title: str
    path: Path
    inputs: tuple[str, ...]


def write_samples(folder: Path) -> tuple[Sample, ...]:
    """Write all models into `folder`."""
    torch.manual_seed(SEED)
    folder.mkdir(parents=True, exist_ok=True)
    mobilenet = folder / "mobilenet_v2.pt"
    torch.jit.script(MobileNetV2().eval()).save(mobilenet)
    recurrent = folder / "lstm.pt"
    torch.jit.script(RecurrentClassifier().eval()).save(recurrent)
    encoder = folder / "transformer.pt"
    with torch.no_grad():
        torch.jit.trace(TransformerClassifier().eval(), torch.randint(1000, (2, 32)), check_trace=False).save(encoder)
    return (
        Sample("Silero VAD", _published(folder), ("--shape", "1,512", "--shape", "=16000")),
        Sample("MobileNetV2", mobilenet, ("--shape", "1,3,224,224")),
        Sample("LSTM", recurrent, ("--shape", "2,32:int64:0..1000")),
        Sample("Transformer", encoder, ("--shape", "2,32:int64:0..1000")),
    )


def _published(folder: Path) -> Path:
    """Silero VAD, as it lies in its package, which is not imported."""
    package = importlib.util.find_spec("silero_vad")
    if package is None or package.origin is None:
        raise SystemExit("this needs a published model: pip install --no-deps silero-vad")
    target = folder / "silero_vad.jit"
    shutil.copyfile(Path(package.origin).parent / "data" / target.name, target)
    return target


def lively(module: nn.Module) -> nn.Module:
    """Let inputs reach the output.

    With fresh batch norms the activations of a deep network fade to nothing, and any two runtimes would agree.
    """
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d) and part.running_var is not None:
            part.running_var.fill_(0.3)
    return module


class InvertedResidual(nn.Module):
    """Expand, filter each channel by itself, project; add the input where the shape allows it."""

    def __init__(self, inputs: int, outputs: int, stride: int, expansion: int) -> None:
        super().__init__()
        hidden = inputs * expansion
        layers: list[nn.Module] = [] if expansion == 1 else [_convolution(inputs, hidden, 1, 1)]
        layers += [_convolution(hidden, hidden, 3, stride, groups=hidden), nn.Conv2d(hidden, outputs, 1, bias=False)]
        self.body = nn.Sequential(*layers, nn.BatchNorm2d(outputs))
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Tensor) -> Tensor:
        """[N, inputs, H, W] -> [N, outputs, H / stride, W / stride]."""
        return x + self.body(x) if self.residual else self.body(x)


def _convolution(inputs: int, outputs: int, kernel: int, stride: int, groups: int = 1) -> nn.Module:
    convolution = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU6())


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, table 2, width 1."""

    # expansion, channels, blocks, stride of the first block
    BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, 32, 3, 2)]
        channels = 32
        for expansion, outputs, blocks, first_stride in self.BLOCKS:
            for block in range(blocks):
                layers.append(InvertedResidual(channels, outputs, first_stride if block == 0 else 1, expansion))
                channels = outputs
        self.features = nn.Sequential(*layers, _convolution(channels, 1280, 1, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: Tensor) -> Tensor:
        """[N, 3, H, W] -> [N, 1000]."""
        return self.classifier(nn.functional.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


class RecurrentClassifier(nn.Module):
    """Two bidirectional LSTM layers over word embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 64)
        self.recurrent = nn.LSTM(64, 128, num_layers=2, batch_first=True, bidirectional=True)
        self.classifier = nn.Linear(256, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        """[N, length] -> probabilities [N, 5]."""
        states, _ = self.recurrent(self.embedding(tokens))
        return torch.softmax(self.classifier(states[:, -1]), dim=-1)


class TransformerClassifier(nn.Module):
    """Four encoder layers with learned positions."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        self.positions = nn.Parameter(torch.randn(1, 512, 256))
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu")
        self.encoder = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.classifier = nn.Linear(256, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        """[N, length up to 512] -> [N, 5]."""
        states = self.encoder(self.embedding(tokens) + self.positions[:, : tokens.shape[1]])
        return self.classifier(states.mean(1))
