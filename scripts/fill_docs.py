"""Put measured numbers and real terminal output into README.md and docs/.

    python scripts/fill_docs.py numbers    from benchmarks/results, which `make bench` writes
    python scripts/fill_docs.py outputs    runs the commands that the pages show (after `make demo`)

A place to be filled stands between two comments, which stay:

    <!-- numbers: build_sizes -->          ... <!-- end -->
    <!-- output: opsieve ops MODEL -->     ... <!-- end -->

`COMMAND |> FILTER` shows the command without the filter that its output goes through.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
PLACE = re.compile(r"(<!-- (numbers|output): (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def main() -> None:
    """Fill the places of one kind in all pages."""
    kinds: dict[str, tuple[str, Callable[[str], str]]] = {
        "numbers": ("numbers", numbers),
        "outputs": ("output", output),
    }
    if len(sys.argv) != 2 or sys.argv[1] not in kinds:
        raise SystemExit(__doc__)
    kind, fill = kinds[sys.argv[1]]
    for page in PAGES:
        text = page.read_text()
        new = filled(text, kind, fill)
        if new != text:
            page.write_text(new)
            print(f"changed: {page.relative_to(ROOT)}")


def filled(text: str, kind: str, fill: Callable[[str], str]) -> str:
    """A page with all places of one kind filled anew; the others stay as they are."""

    def replaced(place: re.Match[str]) -> str:
        return f"{place[1]}{fill(place[3])}\n{place[5]}" if place[2] == kind else place[0]

    return PLACE.sub(replaced, text)


@cache
def output(command: str) -> str:
    """The command and what it prints, as a block; the interpreter's own folder comes first in PATH."""
    shown, _, filtered = command.partition(" |> ")
    command = f"{shown} 2>&1 | {filtered}" if filtered else shown
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    if done.returncode > 1:  # 1 is a finding, which a page may want to show
        raise SystemExit(f"{command} ended with status {done.returncode}:\n{done.stderr}")
    lines = [line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines()]
    return "\n".join(["```console", f"$ {shown}", *lines, "```"])


def numbers(name: str) -> str:
    """One table, or the text of a benchmark that tells its numbers itself."""
    text = RESULTS / f"{name}.txt"
    if text.exists():
        return f"```text\n{text.read_text().strip()}\n```"
    if name not in TABLES:
        raise SystemExit(f"{name} was not measured yet: make bench")
    return TABLES[name]()


def _results(name: str) -> Any:  # noqa: ANN401 (JSON)
    if not (RESULTS / f"{name}.json").exists():
        raise SystemExit(f"{name} was not measured yet: make bench")
    return json.loads((RESULTS / f"{name}.json").read_text())


def _build_sizes() -> str:
    results = _results("build_sizes")
    builds = results["builds"]
    stock = builds[0]
    operators = str(_results("graph_time")["operators"])
    rows = [("full PyTorch", operators, _mb(stock["library_before"]), _mb(stock["package_before"]), "", "", "", "")]
    if results["stripped_library"]:
        rows.append(("the same, stripped", operators, _mb(results["stripped_library"]), "", "", "", "", ""))
    rows += [
        (
            build["model"],
            str(build["operators"]),
            f"{_mb(build['library_after'])} ({build['library_after'] / build['library_before']:.0%})",
            f"{_mb(build['package_after'])} ({build['package_after'] / build['package_before']:.0%})",
            _mb(build["wheel"]),
            f"{build['cold_seconds']:.0f}",
            f"{build['cached_seconds']:.0f}",
            str(build["variations"] or ""),
        )
        for build in builds
    ]
    columns = (
        "model",
        "operators",
        "libtorch_cpu.so, MB",
        "package, MB",
        "wheel, MB",
        "first build, s",
        "next, s",
        "identical",
    )
    return _table(columns, rows)


def _others() -> str:
    graph, torch, start = _results("graph_time"), _results("import_time"), _results("startup_time")
    rows = [
        ("graph of libtorch_cpu.so, from nothing", _seconds(graph["cold_seconds"]), _mb(graph["cold_peak_bytes"])),
        ("the same from the cache", _seconds(graph["cached_seconds"]), _mb(graph["cached_peak_bytes"])),
        ("import torch, full", _seconds(torch["stock_seconds"]), ""),
        ("import torch, slim", _seconds(torch["slim_seconds"]), ""),
        ("opsieve --help", _seconds(start["help_seconds"]), ""),
    ]
    return _table(("", "seconds", "peak memory, MB"), rows)


def _kept_code() -> str:
    found = _results("kept_code")
    rows = [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in found["rows"]]
    return _table(found["columns"], rows)


def _machine() -> str:
    machine = _results("build_sizes")["machine"]
    return (
        f"Measured {machine['date']} by the scripts in `benchmarks/`: "
        f"torch {machine['torch']}, Python {machine['python']}, "
        f"{machine['cores']} cores ({machine['processor']}), {machine['memory_gb']:.0f} GB. MB are 10^6 bytes."
    )


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _source_runtime() -> str:
    rows = [
        (
            row["model"],
            row["policy"],
            str(row["operators"]),
            f"{row['bytes'] / 1e6:.2f}",
            _seconds(row["seconds"]),
            f"{row['forward_ms']:.0f} ({row['forward_ms'] / row['stock_ms']:.1f}x)",
            f"{row['difference']:.0e}" if row["difference"] else "0",
        )
        for row in _results("source_runtime")["runtimes"]
    ]
    columns = ("model", "keeps", "operators", "program, MB", "from command to binary, s", "forward, ms", "difference")
    return _table(columns, rows)


TABLES: dict[str, Callable[[], str]] = {
    "build_sizes": _build_sizes,
    "kept_code": _kept_code,
    "others": _others,
    "source_runtime": _source_runtime,
    "machine": _machine,
}

if __name__ == "__main__":
    main()
