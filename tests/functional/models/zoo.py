"""Models that together use all of TorchScript, and PyTorch's own answer to what they call."""

# No `from __future__ import annotations`: torch.jit.interface needs the types themselves.
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import torch
from torch import Tensor, nn

from tests.data.models.make_models import Everything


class Point(NamedTuple):
    """Built and taken apart."""

    x: Tensor
    y: int


@torch.jit.script
class Sum:
    """A class with an operator of its own."""

    def __init__(self, start: int) -> None:
        self.start = start
        self.total = torch.zeros(start)

    def add(self, x: Tensor) -> None:
        """In place."""
        self.total += x

    def __add__(self, other: int) -> int:
        return self.start + other


@torch.jit.script
def best(x: Tensor, k: int = 3) -> Tensor:
    """A free function."""
    return x.topk(k)[0].log_softmax(0)


class Syntax(nn.Module):
    """Loops, containers, indexing, strings, conversions."""

    index: Final[int]

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.lstm = nn.LSTM(4, 5)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.GELU()])
        self.embedding = nn.Embedding(5, 4)
        self.index = 2
        self.maybe: Tensor | None = None
        self.words = ["é", "b"]

    def forward(
        self, x: Tensor, y: Tensor | None = None, flag: bool = False, p: float = 0.5
    ) -> tuple[Tensor, int, str]:
        """Everything a statement can be."""
        z = self.norm(self.conv(x))
        if y is not None and flag:
            z = z + y
        elif not flag:
            z = -z
        for i in range(z.size(0)):
            if i == 1:
                continue
            z = z * i
        while z.sum() > 100:
            z = z / 2
        numbers: list[int] = []
        numbers.append(int(z.sum()))
        numbers += [1, 2]
        named = {"k": z}
        named["j"] = z
        text = f"{numbers[0]} {p}" + str("k" in named)
        print(text, len(numbers), numbers[-1], numbers[0:2])  # noqa: T201 (the model shall call prim::Print)
        total = Sum(3)
        total.add(torch.ones(3))
        point = Point(z, total + 4)
        if isinstance(y, Tensor):
            z = z - 1
        z[0] = 1
        part = z[0, 1:, None, ...]
        chosen = z[z > 0]
        count = max(numbers) + 5 // 2 + 7 % 3 + sorted(numbers)[0]
        return point.x + part.sum() + chosen.sum() + best(z.flatten()), count, text.upper()

    @torch.jit.export
    def other(
        self, points: dict[str, list[Point]], pair: tuple[int, float] = (1, 2.0), word: str = "é", n: int = -3
    ) -> int:
        """Default values of many kinds."""
        torch.manual_seed(3)
        maybe = self.maybe
        if maybe is not None:
            return int(maybe.item())
        return len(points) + pair[0] + len(word) + len(self.words) + n

    @torch.jit.export
    def recur(self, x: Tensor) -> tuple[Tensor, list[Tensor | None]]:
        """A module with several overloads of forward, and gradients."""
        embedded = self.embedding(x)
        for layer in self.layers:
            embedded = layer(embedded)
        hidden, _ = self.lstm(embedded.unsqueeze(1))
        return torch.einsum("abc,abd->cd", hidden, hidden), torch.autograd.grad([hidden.sum()], [embedded])


class Hooked(nn.Module):
    """A module whose hooks are compiled too."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        """One layer."""
        return self.linear(x)


def before(self: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
    """Forward pre-hook."""
    return (inputs[0].sinh(),)


def after(self: nn.Module, inputs: tuple[Tensor], output: Tensor) -> Tensor:
    """Forward hook."""
    return output.cosh()


class Recurrent(nn.Module):
    """What dynamic quantization turns into custom classes."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.lstm = nn.LSTM(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Both layers."""
        return self.lstm(self.linear(x))[0]


def script_models() -> dict[str, torch.jit.ScriptModule]:
    """All models, compiled or traced."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hooked = Hooked()
        hooked.register_forward_pre_hook(before)
        hooked.register_forward_hook(after)
        quantized = torch.ao.quantization.quantize_dynamic(Recurrent(), {nn.Linear, nn.LSTM}).eval()
        encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
        return {
            "everything": torch.jit.script(Everything()),
            "syntax": torch.jit.script(Syntax()),
            "hooked": torch.jit.script(hooked),
            "quantized": torch.jit.script(quantized),
            "quantized-frozen": torch.jit.freeze(torch.jit.script(quantized)),
            "transformer": torch.jit.script(encoder),
            "transformer-traced": torch.jit.trace(encoder, torch.randn(1, 3, 8), check_trace=False),
            "function": torch.jit.script(best),
        }


def loaded_calls(path: Path) -> dict[str, set[str]]:
    """By function: every operator in the graphs that a real load of the model compiles, weights and all."""
    unit = torch._C.CompilationUnit()
    torch._C.import_ir_module(unit, str(path), None, {}, False)
    return {function.qualified_name: set(_operators(function.graph)) for function in unit.get_functions()}


def _operators(block: torch._C.Graph | torch._C.Block) -> Iterator[str]:
    for node in block.nodes():
        if node.schema() != "(no schema)":
            yield node.schema().partition("(")[0]
        for inner in node.blocks():
            yield from _operators(inner)
        for attribute in node.attributeNames():
            if node.kindOf(attribute) == "g":
                yield from _operators(node.g(attribute))
