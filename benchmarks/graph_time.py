"""How long the graph of `libtorch_cpu.so` takes, from nothing and from the cache, and how much memory.

    python -m benchmarks.graph_time [--runs N]

Measured on the whole command `opsieve graph`, from the start of the process to its end. The library itself is in the
memory of the operating system, as it is after an installation or an import.
"""

from __future__ import annotations

import os
import statistics

from benchmarks.memory import peak_memory
from benchmarks.report import OPSIEVE, empty_cache, parser, report, timed
from opsieve.graph.load import LIBRARY
from opsieve.installed import find_torch

COMMAND = (OPSIEVE, "graph", "--operators")


def main() -> None:
    """Measure and report."""
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=int, default=3, help="runs from nothing; five times as many cached")
    options = arguments.parse_args()
    find_torch().library(LIBRARY).read_bytes()
    cold: list[float] = []
    warm: list[float] = []
    for _ in range(options.runs):
        with empty_cache() as environment:
            cold.append(timed(COMMAND, environment)[0])
            warm.extend(timed(COMMAND, environment)[0] for _ in range(5))
    with empty_cache() as environment:
        most = peak_memory(COMMAND, {**os.environ, **environment})
        most_cached = peak_memory(COMMAND, {**os.environ, **environment})
    numbers = {
        "operators": len(timed(COMMAND)[1].splitlines()),
        "cold_seconds": statistics.median(cold),
        "cached_seconds": statistics.median(warm),
        "cold_peak_bytes": most,
        "cached_peak_bytes": most_cached,
        "runs": options.runs,
    }
    rows = [
        ("from nothing", f"{statistics.median(cold):.1f}", f"{most / 1e6:.0f}"),
        ("from the cache", f"{statistics.median(warm):.2f}", f"{most_cached / 1e6:.0f}"),
    ]
    report(("opsieve graph", "seconds (median)", "peak memory, MB"), rows, numbers, options.json)


if __name__ == "__main__":
    main()
