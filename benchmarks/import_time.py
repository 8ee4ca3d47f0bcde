"""How long `import torch` takes, stock against slim: in turns, so that whatever else the machine does hits both.

    python -m benchmarks.import_time [--slim FOLDER]

FOLDER is the `python` folder of an opsieve build; without it, one is built for a published model.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.models import write_samples
from benchmarks.report import OPSIEVE, parser, report, timed

RUNS = 15
CODE = "import torch"


def main() -> None:
    """Measure and report."""
    arguments = parser(__doc__)
    arguments.add_argument("--slim", type=Path, metavar="FOLDER", help="the slim package to measure")
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory(prefix="opsieve-import-") as folder:
        slim = options.slim or _build(Path(folder))
        pairs = [_pair(slim, Path(folder), turn) for turn in range(RUNS + 1)][1:]
    stock, ours = ([pair[side] for pair in pairs] for side in (0, 1))
    ratio = statistics.median(after / before for before, after in pairs)
    numbers = {
        "stock_seconds": statistics.median(stock),
        "slim_seconds": statistics.median(ours),
        "median_ratio": ratio,
        "runs": RUNS,
    }
    rows = [
        ("stock", f"{statistics.median(stock):.2f}", f"{min(stock):.2f}"),
        ("slim", f"{statistics.median(ours):.2f}", f"{min(ours):.2f}"),
        ("slim / stock, pair by pair", f"{ratio:.2f}", ""),
    ]
    report((CODE, "median, s", "fastest, s"), rows, numbers, options.json)


def _pair(slim: Path, folder: Path, turn: int) -> tuple[float, float]:
    """Seconds for stock and slim, one directly after the other; who goes first alternates.

    Both keep their byte code in the same way, in a folder of their own, so the first pair fills it for both.
    """
    sides = [("stock", {}), ("slim", {"PYTHONPATH": str(slim)})]
    seconds = {}
    for name, environment in reversed(sides) if turn % 2 else sides:
        caches = {"PYTHONPYCACHEPREFIX": str(folder / f"bytecode-{name}")}
        seconds[name], _ = timed([sys.executable, "-c", CODE], {**caches, **environment})
    return seconds["stock"], seconds["slim"]


def _build(folder: Path) -> Path:
    model = write_samples(folder / "models")[0]
    timed([OPSIEVE, "build", model.path, "-o", folder / "slim", "--no-wheel"], dict(os.environ))
    return folder / "slim" / "python"


if __name__ == "__main__":
    main()
