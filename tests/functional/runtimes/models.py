"""Real architectures for the tests of slim runtimes: built with torch, run as a script of its own.

`python models.py make NAME FOLDER` writes NAME.pt (TorchScript) and NAME.inputs.pt; `python models.py run MODEL INPUTS`
prints a digest of everything that the model answers over a few ways of calling it.
"""

import hashlib
import sys
from pathlib import Path

import torch
from torch import nn


class Block(nn.Module):
    """Inverted residual, as in MobileNetV2."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        hidden = inputs * 6
        self.residual = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *(nn.Conv2d(inputs, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(inplace=True)),
            *(nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden)),
            *(nn.ReLU6(inplace=True), nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.residual:
            return x + self.body(x)
        return self.body(x)


class Mobile(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6(inplace=True)),
            *(Block(16, 24, 2), Block(24, 24, 1), Block(24, 32, 2)),
        )
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.flatten(nn.functional.adaptive_avg_pool2d(self.body(x), (1, 1)), 1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 16)
        self.lstm = nn.LSTM(16, 32, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.lstm(self.embedding(x))
        return torch.log_softmax(self.out(hidden[:, -1]), -1)


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(32, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.encoder(self.embedding(x)).mean(1))


MODELS = {"mobile": Mobile, "recurrent": Recurrent, "encoder": Encoder}


def make(name: str, folder: Path) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    images = [torch.randn(1, 3, 64, 64), torch.randn(3, 3, 48, 80), torch.randn(2, 3, 32, 32, dtype=torch.float64)]
    texts = [torch.randint(0, 100, (2, 17)), torch.randint(0, 100, (1, 5)), torch.full((1, 3), 200)]
    inputs = images if name == "mobile" else texts
    scripted = torch.jit.trace(model, inputs[0], check_trace=False) if name == "encoder" else torch.jit.script(model)
    scripted.save(str(folder / f"{name}.pt"))
    torch.save(inputs, folder / f"{name}.inputs.pt")


def run(model: str, inputs: str) -> None:
    """The last of the inputs is one that the model must refuse."""
    digest = hashlib.sha256()
    for tensor in torch.load(inputs):
        for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            for threads in (1, 2):
                torch.set_num_threads(threads)
                digest.update(answer(torch.jit.load(model), tensor, mode))
    sys.stdout.write(f"{torch.__file__}\n{digest.hexdigest()}\n")


def answer(module: torch.jit.ScriptModule, tensor: torch.Tensor, mode: type) -> bytes:
    found = []
    for _ in range(3):
        try:
            with mode():
                found.append(module(tensor).detach().numpy().tobytes())
        except Exception as error:
            found.append(repr(error).encode())
    return b"".join(found)


if __name__ == "__main__":
    {"make": lambda name, folder: make(name, Path(folder)), "run": run}[sys.argv[1]](*sys.argv[2:])
