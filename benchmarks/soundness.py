"""How sound and how precise the operator graph is: torch's own test data, recorded and held against it.

Run from the root of the repository, with torch and g++ (about six minutes on two cores):

    python -m benchmarks.soundness [MODE...]

One line per mode: calls made, operators seen, edges seen (one operator dispatched from inside another), how many of
them the graph does not have within the scope that covers them. Then the direct dependencies that the graph has for the
operators seen to dispatch anything: of all their kernels, and without autograd's wrappers, which share some fifty each;
and the latter per edge seen. That is an upper bound of what is too much: an edge that never ran may still exist.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.functional.truth.observations import observe
from tests.functional.truth.recorder import compile_recorder
from tests.functional.truth.soundness import Judge, Verdict

from opsieve.code.elf import ElfFile
from opsieve.graph.load import LIBRARY
from opsieve.graph.op_graph import build_op_graph
from opsieve.graph.symbols import INTERPRETER
from opsieve.graph.truth import KeyDifference, compare_registrations, read_truth, source_files_in
from opsieve.installed import find_torch

MODES = ("dense", "grad", "backward", "sparse", "quantized", "mkldnn", "nested", "views", "schemas")
_HEADINGS = ("mode", "calls", "operators", "edges", "outside", "static edges", "kernels only", "precision", "s")
_COLUMNS = "{:<11}{:>9}{:>11}{:>8}{:>9}{:>14}{:>14}{:>11}{:>6}"


def main() -> None:
    """Print both tables; the exit status is 1 if anything lies outside the graph."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mode", nargs="*", help=f"of {', '.join(MODES)}; all by default")
    modes = parser.parse_args().mode or MODES
    install = find_torch()
    library = install.library(LIBRARY)
    graph, truth = build_op_graph(ElfFile(library)), read_truth(install)
    print(f"torch {truth.version}, {LIBRARY}, build id {graph.build_id}\n")
    _print_registrations(compare_registrations(graph.registrations, truth, files=source_files_in(library, truth)))
    judge = Judge(graph, library, truth)
    print(
        _COLUMNS.format(
            "mode", "calls", "operators", "edges", "outside", "static edges", "kernels only", "precision", "s"
        )
    )
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        recorder = compile_recorder(install, Path(folder))
        for mode in modes:
            started = time.perf_counter()
            verdict = judge.judge(observe(install, recorder, mode, Path(folder) / mode))
            _print_verdict(verdict, time.perf_counter() - started)
            faults += len(verdict.outside)
    raise SystemExit(1 if faults else 0)


def _print_registrations(differences: Iterable[KeyDifference]) -> None:
    row = "{:<40}{:>7}{:>7}{:>9}{:>10}"
    print(row.format("registrations for", "torch", "found", "missing", "spurious"))
    for d in differences:
        if d.key != INTERPRETER:
            print(row.format(d.key, d.expected, d.found, len(d.missing), len(d.spurious)))
    print()


def _print_verdict(verdict: Verdict, seconds: float) -> None:
    numbers = (f"{verdict.calls:,}", f"{verdict.operators:,}", f"{verdict.edges:,}", len(verdict.outside))
    sizes = (f"{verdict.static_edges:,}", f"{verdict.kernel_edges:,}", f"{verdict.precision:.2f}", f"{seconds:.0f}")
    print(_COLUMNS.format(verdict.mode, *numbers, *sizes), flush=True)
    for edge in verdict.outside:
        print(f"    outside: {edge.parent} -> {edge.child} {' '.join(edge.needs)}")


if __name__ == "__main__":
    main()
