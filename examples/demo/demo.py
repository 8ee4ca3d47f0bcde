"""The main job on a model that nobody here wrote: Silero VAD, which hears whether somebody speaks.

`make demo` runs this after setting everything up. It only calls the command line, as a user would:

    python examples/demo/demo.py [--output demo-out]
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shlex
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

MODEL_PACKAGE, MODEL_FILE = "silero_vad", "data/silero_vad.jit"
ARGUMENTS = ("1,512", "=16000")
"""What the model takes: 32 milliseconds of sound, and the samples per second."""

KEPT, PRUNED = "aten::lstm_cell", "aten::randn"
WIDTH = 80


def main() -> None:
    """Go through the job step by step, and stop at the first that fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("demo-out"), help="everything is written here")
    output: Path = parser.parse_args().output
    slim = output / "slim"
    begin = time.perf_counter()
    model = fetch_model(output)
    heading("Which operators does the model call?")
    opsieve("ops", str(model), "--reach", "dispatcher")
    heading("Build a PyTorch with just these, and what they need in turn")
    opsieve("build", str(model), "-o", str(slim), *again(slim))
    heading("Does it still compute the same? Run both, compare every bit")
    opsieve("verify", str(slim), *(part for shape in ARGUMENTS for part in ("--shape", shape)))
    heading("What if a program calls an operator that was left out?")
    call_pruned(slim)
    heading("Why is an operator in it?")
    opsieve("why", KEPT, str(slim))
    heading(f"Done in {time.perf_counter() - begin:.0f} seconds")
    summary(slim)


def fetch_model(output: Path) -> Path:
    """Copy the model out of the package it was published in, which is not imported."""
    package = importlib.util.find_spec(MODEL_PACKAGE)
    if package is None or package.origin is None:
        raise SystemExit(f"{MODEL_PACKAGE} is not installed: use `make demo`")
    model = output / Path(MODEL_FILE).name
    output.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(Path(package.origin).parent / MODEL_FILE, model)
    return model


def again(slim: Path) -> tuple[str, ...]:
    """Replace what an earlier demo built, and say so."""
    if not slim.exists():
        return ()
    print(f"({slim} is there from an earlier run and is built anew; the graph of the library is reused)\n")
    return ("--force",)


def opsieve(*arguments: str) -> None:
    """Show a command line and run it."""
    print(f"$ opsieve {shlex.join(arguments)}\n", flush=True)
    # The script of this environment, which need not be on PATH.
    done = subprocess.run([Path(sys.executable).with_name("opsieve"), *arguments], check=False)
    if done.returncode != 0:
        raise SystemExit(f"opsieve ended with status {done.returncode}")


def call_pruned(slim: Path) -> None:
    """Call an operator that is not in the runtime, and show that this is an ordinary error."""
    operator = PRUNED.rpartition("::")[2]
    code = f"import torch; torch.{operator}(3)"
    print(f"$ PYTHONPATH={slim}/python python -c {shlex.quote(code)}\n", flush=True)
    environment = {**os.environ, "PYTHONPATH": str(slim / "python")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    error = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
    print(textwrap.fill(error, WIDTH))
    if done.returncode != 1 or PRUNED not in error:
        raise SystemExit(f"expected a RuntimeError that names {PRUNED}, status {done.returncode}")


def summary(slim: Path) -> None:
    """The sizes before and after, and where everything is."""
    from opsieve.cli.output import megabytes, print_table

    report = json.loads((slim / "report.json").read_text())
    library = report["libraries"]["libtorch_cpu.so"]
    sizes = [
        ("libtorch_cpu.so", library["stock_size"], library["file_size"]),
        ("the installed package", report["stock_bytes"], report["kept_bytes"]),
    ]
    rows = [(name, megabytes(before), megabytes(after), f"{after / before:.0%}") for name, before, after in sizes]
    columns = ("", "before, MB", "after, MB", "left")
    print_table(columns, rows, right=columns[1:])
    print(f"\n{slim}/python             put it onto PYTHONPATH")
    print(f"{slim}/torch-*.whl        or install it with pip")
    print(f"{slim}/selection.json     every operator that stays, and why")
    print(f"{slim}/report.json        where the bytes are, which files were dropped and why")


def heading(text: str) -> None:
    """Set the steps apart."""
    print(f"\n{text}\n{'=' * len(text)}\n", flush=True)


if __name__ == "__main__":
    main()
