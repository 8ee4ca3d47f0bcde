"""Time and memory to find a model's operators as its weights grow, against PyTorch's own way.

    python benchmarks/read_models.py [--sizes 1 100 1000] [--repeat 3] [--folder DIR]

Makes TorchScript models of the same code and more and more weights (in a temporary folder, which needs room for
the largest), and runs each way in fresh processes, page cache warm. Prints the best times and the largest memory
of all repetitions. `opsieve ops` is the whole command; PyTorch's time is given with and without `import torch`.
On a busy machine look at the processor time.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

MAKE = """
import sys, warnings
import torch
from torch import nn
warnings.simplefilter("ignore")

class Layer(nn.Module):
    def __init__(self, numbers):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(numbers), requires_grad=False)
    def forward(self, x):
        if bool(x.sum() > 0):
            x = torch.relu(x) + self.weight[0]
        return x * 2

layers = 20
numbers = int(sys.argv[2]) * 1_000_000 // 4 // layers
torch.jit.script(nn.Sequential(*[Layer(numbers) for _ in range(layers)])).save(sys.argv[1])
"""

OPSIEVE = "import sys; from opsieve.cli.main import main; main()"

PYTORCH = """
import sys, time, warnings
import torch
warnings.simplefilter("ignore")
started = time.perf_counter()
names = torch.jit.export_opnames(torch.jit.load(sys.argv[1]))
sys.stdout.write(f"{time.perf_counter() - started} {len(names)}")
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one process and its children took: seconds of wall and of processor time, peak memory in MB, its output."""

    seconds: float
    processor: float
    megabytes: float
    output: str


def measured(arguments: list[str]) -> Cost:
    """Run Python with `arguments` and measure it."""
    started = time.perf_counter()
    with subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None  # noqa: S101 (asked for above)
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{arguments[-1]}: status {process.returncode}")
    processor = usage.ru_utime + usage.ru_stime
    return Cost(time.perf_counter() - started, processor, usage.ru_maxrss / 1024, output)


def best(arguments: list[str], repeat: int) -> Cost:
    """The fastest of `repeat` runs, with the largest memory of all."""
    costs = [measured(arguments) for _ in range(repeat)]
    fastest = min(costs, key=lambda cost: cost.seconds)
    processor = min(cost.processor for cost in costs)
    return Cost(fastest.seconds, processor, max(cost.megabytes for cost in costs), fastest.output)


def compare(folder: Path, size: int, repeat: int) -> None:
    """Measure one size and print its rows."""
    model = folder / "model.pt"
    maker = folder / "make.py"  # a file, because torch.jit.script wants to see the source
    maker.write_text(MAKE)
    subprocess.run([sys.executable, maker, model, str(size)], check=True)
    ways = {
        "opsieve ops --no-torch": ["-c", OPSIEVE, "ops", "--no-torch", "--format", "json", str(model)],
        "opsieve ops": ["-c", OPSIEVE, "ops", "--format", "json", str(model)],
        "torch.jit.load, export_opnames": ["-c", PYTORCH, str(model)],
    }
    for name, arguments in ways.items():
        cost = best(arguments, repeat)
        row(
            f"{model.stat().st_size / 1e6:,.0f}",
            name,
            f"{cost.seconds:.2f}",
            f"{cost.processor:.2f}",
            f"{cost.megabytes:,.0f}",
        )
        if arguments[1] == PYTORCH:
            row("", "  without import torch", f"{float(cost.output.split()[0]):.2f}", "", "")
    model.unlink()


def row(*cells: str) -> None:
    """Print one line of the table."""
    size, way, seconds, processor, megabytes = cells
    print(f"{size:>8}  {way:<31}{seconds:>8}{processor:>14}{megabytes:>14}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000], help="megabytes of weights")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where to put the models (default: the system's temporary folder)")
    options = parser.parse_args()
    row("MB", "way", "seconds", "processor s", "peak RSS, MB")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size in options.sizes:
            compare(Path(folder), size, options.repeat)


if __name__ == "__main__":
    main()
