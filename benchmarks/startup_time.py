"""How long `opsieve --help` takes: what every command pays before it begins.

python -m benchmarks.startup_time
"""

from __future__ import annotations

import statistics
import sys

from benchmarks.report import OPSIEVE, parser, report, timed

RUNS = 21


def main() -> None:
    """Measure and report; the first run of each only warms the caches."""
    options = parser(__doc__).parse_args()
    bare = [timed([sys.executable, "-c", "pass"])[0] for _ in range(RUNS)][1:]
    ours = [timed([OPSIEVE, "--help"])[0] for _ in range(RUNS)][1:]
    numbers = {"python_seconds": statistics.median(bare), "help_seconds": statistics.median(ours), "runs": RUNS - 1}
    rows = [
        ("python -c pass", f"{statistics.median(bare) * 1000:.0f}"),
        ("opsieve --help", f"{statistics.median(ours) * 1000:.0f}"),
    ]
    report(("command", "milliseconds (median)"), rows, numbers, options.json)


if __name__ == "__main__":
    main()
