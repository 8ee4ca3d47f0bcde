"""Child process: makes the calls of one mode under the recorder.

Request: `{"recorder": path, "mode": name, "folder": path, "workers": n}`. The answer counts targets, calls and calls
that raised, and names the targets that ended their process (torch has such bugs); the records are the `*.tsv` in
`folder`. Targets run in forked workers, which write down what they recorded after each one, so that a crash costs only
that one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.functional.truth.recorder import Recorder
from tests.functional.truth.targets import Target, targets_of

SECONDS_PER_TARGET = 30


def main() -> None:
    """Answer one request from standard input."""
    request = json.load(sys.stdin)
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.filterwarnings("ignore")
    torch.set_grad_enabled(request["mode"] in ("grad", "backward"))
    recorder = Recorder(Path(request["recorder"]))
    targets, folder, count = targets_of(request["mode"]), Path(request["folder"]), request["workers"]
    shares = [targets[n::count] for n in range(count)]
    workers = [_fork(_supervise, share, recorder, folder / str(n)) for n, share in enumerate(shares)]
    statuses = [_wait(worker) for worker in workers]
    if any(statuses):
        raise SystemExit(f"a supervisor ended with status {statuses}")
    with answer_to:
        json.dump(_summary(folder), answer_to)


def _fork(function: Any, *arguments: Any) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            function(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child


def _supervise(targets: Sequence[Target], recorder: Recorder, stem: Path) -> None:
    """Run all targets in one process; when it dies, see what the one it was at still shows, and go on behind it."""
    log = stem.with_suffix(".log")
    log.touch()
    while (done := len(log.read_text().splitlines())) < len(targets):
        status = _wait(_fork(_work, targets[done:], recorder, stem))
        if status != 0:
            crashed = targets[len(log.read_text().splitlines())]
            if status != signal.SIGALRM:
                _wait(_fork(_until_it_crashes, crashed, recorder, stem))
            _note(log, {"target": crashed.name, "calls": 0, "raised": 0, "crash": status})


def _wait(child: int) -> int:
    return os.waitpid(child, 0)[1]


def _work(targets: Sequence[Target], recorder: Recorder, stem: Path) -> None:
    _set_up(recorder, stem)
    for target in targets:
        signal.alarm(SECONDS_PER_TARGET)  # ends the process: one crash more
        report = _run(target)
        recorder.flush(stem.with_suffix(".tsv"))
        _note(stem.with_suffix(".log"), report)


def _until_it_crashes(target: Target, recorder: Recorder, stem: Path) -> None:
    _set_up(recorder, stem)
    signal.alarm(SECONDS_PER_TARGET)
    _run(target, after_each=lambda: recorder.flush(stem.with_suffix(".tsv")))


def _set_up(recorder: Recorder, stem: Path) -> None:
    os.chdir(stem.parent)  # some operators make files
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # megabytes of warnings; what matters is in the log
    recorder.start()


def _run(target: Target, after_each: Callable[[], None] = lambda: None) -> dict[str, Any]:
    torch.manual_seed(0)
    calls = raised = 0
    for call in target.calls():
        calls += 1
        try:
            call()
        except Exception:  # most conversions are refused by most operators
            raised += 1
        after_each()
    return {"target": target.name, "calls": calls, "raised": raised, "crash": 0}


def _note(log: Path, report: dict[str, Any]) -> None:
    with log.open("a") as file:
        file.write(json.dumps(report) + "\n")


def _summary(folder: Path) -> dict[str, Any]:
    reports = [json.loads(line) for log in folder.glob("*.log") for line in log.read_text().splitlines()]
    return {
        "targets": len(reports),
        "calls": sum(r["calls"] for r in reports),
        "raised": sum(r["raised"] for r in reports),
        "crashed": sorted(r["target"] for r in reports if r["crash"]),
    }


if __name__ == "__main__":
    main()
