"""Makes the small model files beside this script, with the torch that opsieve supports:

    python tests/data/models/make_models.py

Unit tests read them where there is no torch. The expected operators in those tests come from PyTorch itself:
this script prints what `torch.jit.mobile._export_operator_list` and the exported graph say.
"""

import io
import sys
import zipfile
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.jit.mobile import _export_operator_list, _load_for_lite_interpreter

HERE = Path(__file__).resolve().parent


class Kind(Enum):
    """An enumeration that the code compares with."""

    PLAIN = "plain"
    LOUD = "loud"


class Pair(NamedTuple):
    """A named tuple that the code builds."""

    left: Tensor
    count: int


@torch.jit.interface
class Activation(nn.Module):
    """A module that is only known by its interface."""

    def forward(self, x: Tensor) -> Tensor:
        pass


class Tanh(nn.Module):
    """The implementation behind the interface."""

    def forward(self, x: Tensor) -> Tensor:
        """Calls aten::tanh."""
        return x.tanh()


@torch.jit.script
class Counter:
    """A class of the model itself."""

    def __init__(self, start: int) -> None:
        self.value = start

    def advance(self, by: int) -> int:
        """Adds integers, which only the interpreter does."""
        self.value += by
        return self.value


def background(x: Tensor) -> Tensor:
    """Runs in a fork."""
    return x.cumsum(0)


class Everything(nn.Module):
    """Most of what TorchScript can say."""

    activation: Activation

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        self.branches = nn.ModuleDict({"from": nn.Sigmoid()})  # an attribute that is a keyword of Python
        self.activation = Tanh()
        self.label = "é"

    def forward(self, x: Tensor, kind: Kind, mask: Tensor | None = None) -> tuple[Pair, Tensor, str]:
        """Control flow, containers, a with block, a fork and an interface call."""
        task = torch.jit.fork(background, x)
        x = self.inner(x)
        if mask is not None:
            x = x * mask
        counter = Counter(1)
        for step in range(x.size(0)):
            if counter.advance(step) > 3:
                break
        with torch.no_grad():
            x = self.activation.forward(x)
        for branch in self.branches.values():
            x = branch(x)
        texts = {"kind": kind.value, "label": self.label}
        print(texts["kind"])  # noqa: T201 (the model shall call prim::Print)
        parts: list[Tensor] = [x, torch.jit.wait(task)]
        parts[0] = -parts[0]
        return Pair(torch.cat(parts), int(x.sum())), parts[-1][0, 1:], f"{texts}"

    @torch.jit.export
    def other(self, x: Tensor, by: str = "ü") -> list[float]:
        """A second entry point."""
        values: list[float] = x.softmax(0).tolist()
        assert len(by) < 3, "too long"
        return values


class Lite(nn.Module):
    """Two methods for the lite interpreter."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        """A branch and a slice."""
        y = self.linear(x)
        if bool(x.sum() > 0):
            y = y + 1
        return y[:, 0]

    @torch.jit.export
    def size(self, x: Tensor) -> int:
        """Called on its own."""
        return x.size(0)


class Branches(nn.Module):
    """A higher-order operator with nested graphs, a changed buffer and arithmetic on a symbolic size."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        """Calls torch.cond."""
        self.seen.add_(1)
        y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))
        return y.reshape(x.shape[0] * 2) + self.seen.sum()


def shrink(path: Path) -> None:
    """Drop the debug records, which are most of a small archive, and the folder of this machine from stack traces."""
    content = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.infolist():
            if not member.filename.endswith(".debug_pkl"):
                data = old.read(member).replace(f"{HERE}/".encode(), b"")
                new.writestr(zipfile.ZipInfo(member.filename), data, zipfile.ZIP_DEFLATED)
    path.write_bytes(content.getvalue())


def main() -> None:
    """Write all files and print what PyTorch says about them."""
    torch.manual_seed(0)
    torch.jit.script(Everything()).save(str(HERE / "everything.pt"))
    lite = torch.jit.script(Lite())
    lite._save_for_lite_interpreter(str(HERE / "lite.ptl"))
    lite._save_for_lite_interpreter(str(HERE / "lite.ff"), _use_flatbuffer=True)
    rows = torch.export.Dim("rows", min=2, max=9)
    functional = torch.export.export(
        Branches(), (torch.ones(3, 2),), dynamic_shapes={"x": {0: rows}}
    ).run_decompositions({})
    torch.export.save(functional, str(HERE / "branches.pt2"))
    torch.save({"weight": torch.ones(2)}, HERE / "weights.pt")
    sys.stdout.write(f"{functional}\n")
    for name in ("everything.pt", "lite.ptl", "branches.pt2", "weights.pt"):
        shrink(HERE / name)
    listed = sorted(_export_operator_list(_load_for_lite_interpreter(str(HERE / "lite.ptl"))))
    sys.stdout.write(f"{listed}\n")


if __name__ == "__main__":
    main()
