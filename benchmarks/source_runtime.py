"""Runtimes from source: bytes by model and policy, seconds from command to binary, and forward time against the wheel.

    python -m benchmarks.source_runtime [--source TREE] [--everything]

Without a tree, PyTorch 2.6.0 is got through apt into opsieve's cache folder.

Everything is compiled before anything is timed: the seconds are those of a second build of the same runtime. Sizes
are of the stripped runner, the C++ library shared. The traced policy gets the operators that the static runtime writes
down for one forward pass. `--everything` adds a runtime with every operator of the tree, compiling most of it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.models import SEED, MobileNetV2, RecurrentClassifier, TransformerClassifier, lively
from benchmarks.report import OPSIEVE, parser, report, timed
from opsieve.graph.cache import cache_folder
from opsieve.runtimes.source.debian_source import get_source

VERSION = "2.6.0"
DTYPES = "float,long,int,bool"
REPEAT = 20


@dataclass(frozen=True, slots=True)
class Lite:
    """A model for the lite interpreter, its input, and the wheel's answer."""

    title: str
    path: Path
    given: Path
    expected: Path
    stock_ms: float
    """Median of a forward pass of the installed PyTorch, one thread, oneDNN off."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One runtime."""

    model: str
    policy: str
    operators: int
    bytes: int
    seconds: float
    links: int
    forward_ms: float
    stock_ms: float
    difference: float
    """Largest, relative to the largest answer."""


def main() -> None:
    """Measure and report."""
    arguments = parser(__doc__)
    arguments.add_argument("--source", type=Path, metavar="TREE", help="a PyTorch source tree")
    arguments.add_argument("--everything", action="store_true", help="a runtime with every operator, too")
    options = arguments.parse_args()
    source = options.source or get_source(VERSION, cache_folder() / f"pytorch-{VERSION}").tree.root
    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="opsieve-source-") as name:
        folder = Path(name)
        models = [_saved(title, module, given, folder) for title, module, given in _models()]
        measured = [row for model in models for row in _policies(model, source, folder)]
        if options.everything:
            measured.append(_everything(models[0], source, folder))
    rows = [
        (
            row.model,
            row.policy,
            str(row.operators),
            f"{row.bytes / 1e6:.2f}",
            f"{row.seconds:.1f}",
            f"{row.forward_ms:.0f}",
            f"{row.forward_ms / row.stock_ms:.2f}",
            f"{row.difference:.0e}",
        )
        for row in measured
    ]
    columns = ("model", "policy", "ops", "MB", "s", "ms", "ms/wheel", "diff")
    numbers = {"runtimes": [{name: getattr(row, name) for name in Measured.__slots__} for row in measured]}
    report(columns, rows, numbers, options.json)


def _models() -> Iterator[tuple[str, nn.Module, Tensor]]:
    yield "MobileNetV2", lively(MobileNetV2()), torch.randn(1, 3, 224, 224)
    yield "LSTM", RecurrentClassifier(), torch.randint(1000, (2, 32))
    yield "Transformer", TransformerClassifier(), torch.randint(1000, (2, 32))


def _saved(title: str, module: nn.Module, given: Tensor, folder: Path) -> Lite:
    path = folder / f"{title}.ptl"
    scripted = torch.jit.script(module.eval())
    scripted._save_for_lite_interpreter(str(path))
    with torch.no_grad(), torch.backends.mkldnn.flags(enabled=False):
        expected = module(given)
        stock = _median(lambda: module(given))
    np.save(folder / f"{title}.given.npy", given.numpy())
    np.save(folder / f"{title}.expected.npy", expected.numpy())
    return Lite(title, path, folder / f"{title}.given.npy", folder / f"{title}.expected.npy", stock)


def _median(forward: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEAT):
        begin = time.perf_counter()
        forward()
        times.append((time.perf_counter() - begin) * 1e3)
    return float(np.median(times))


def _policies(model: Lite, source: Path, folder: Path) -> Iterator[Measured]:
    yield _measured(model, "static", source, folder)
    traced = folder / f"{model.title}.operators"
    subprocess.run(
        [folder / "out/bin/run", model.path, "--input", model.given, "--operators", traced],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    yield _measured(model, "static, dtypes", source, folder, "--dtypes", DTYPES)
    named = ("--policy", "traced", "--ops-from", str(traced))
    yield _measured(model, "traced", source, folder, *named)
    yield _measured(model, "traced, dtypes", source, folder, *named, "--dtypes", DTYPES)


def _everything(model: Lite, source: Path, folder: Path) -> Measured:
    from opsieve.runtimes.source.objects import Compiler
    from opsieve.runtimes.source.options import BuildOptions
    from opsieve.runtimes.source.tree import SourceTree
    from opsieve.runtimes.source.workspace import open_workspace

    workspace = open_workspace(SourceTree.open(source), BuildOptions(), Compiler.find())
    names = [name if name.overload else f"{name}.default" for name in workspace.sites.operators]
    (folder / "everything").write_text("".join(f"{name}\n" for name in names))
    return _measured(model, "everything", source, folder, "--ops-from", str(folder / "everything"), "--scope", "all")


def _measured(model: Lite, policy: str, source: Path, folder: Path, *options: str) -> Measured:
    out = folder / "out"
    command: list[str | Path] = [
        OPSIEVE,
        "build",
        model.path,
        "--runtime",
        "source",
        "--source",
        source,
        "-o",
        out,
        "--format",
        "json",
    ]
    for _ in range(2):  # the first one compiles
        shutil.rmtree(out, ignore_errors=True)
        seconds, said = timed([*command, *options])
    built = json.loads(said)
    words: list[str | Path] = [
        "--input",
        model.given,
        "--expect",
        model.expected,
        "--repeat",
        str(REPEAT),
        "--threads",
        "1",
        "--json",
    ]
    ran = subprocess.run([out / "bin/run", model.path, *words], capture_output=True, text=True, check=False)
    told = json.loads(ran.stdout)
    largest = float(np.abs(np.load(model.expected)).max())
    return Measured(
        model=model.title,
        policy=policy,
        operators=len(built["operators"]),
        bytes=(out / "bin/run").stat().st_size,
        seconds=seconds,
        links=built["links"],
        forward_ms=told["median_ms"],
        stock_ms=model.stock_ms,
        difference=float(told["outputs"][0]["absolute"]) / largest,
    )


if __name__ == "__main__":
    main()
