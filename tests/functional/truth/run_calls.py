"""Child process: makes the calls of one mode under the recorder.

Request: `{"recorder": path, "mode": name, "folder": path, "workers": n}`. The answer counts targets, calls and calls
that raised, and names the targets that ended their process (torch has such bugs); the records are the `*.tsv` in
`folder`. Targets run in forked workers, which write down what they recorded after each one, so that a crash costs only
that one.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from tests.functional.truth.recorder import Recorder
from tests.functional.truth.targets import Target, targets_of

SECONDS_PER_TARGET = 30
"""Of processor time, so that a busy machine changes nothing. Some made-up calls never end."""

SECONDS_WITHOUT_WORK = 5
MADE_UP_PER_PROCESS = 16


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
    statuses = [os.waitpid(worker, 0)[1] for worker in workers]
    if any(statuses):
        raise SystemExit(f"a supervisor ended with status {statuses}")
    with answer_to:
        json.dump(_summary(folder), answer_to)


def _fork(function: Any, *arguments: Any) -> int:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            _end_with_parent()
            function(*arguments)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)
    return child


def _end_with_parent() -> None:
    set_parent_death_signal = 1  # prctl(2)
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)


def _supervise(targets: Sequence[Target], recorder: Recorder, stem: Path) -> None:
    """Run all targets, many in one process; when it dies, see what the one it was at still shows, and go on."""
    log = stem.with_suffix(".log")
    log.touch()
    while (done := _lines(log)) < len(targets):
        # A made-up call may spoil the memory of its process, which must then not serve many more.
        count = MADE_UP_PER_PROCESS if targets[done].made_up else len(targets)
        status = _wait(_fork(_work, targets[done : done + count], recorder, stem))
        if status != 0:
            crashed = targets[_lines(log)]
            if status not in (signal.SIGPROF, signal.SIGKILL):
                _wait(_fork(_until_it_crashes, crashed, recorder, stem))
            _note(log, {"target": crashed.name, "calls": 0, "raised": 0, "crash": status})


def _lines(log: Path) -> int:
    return log.read_bytes().count(b"\n")


def _wait(child: int) -> int:
    """The status of a child; one that has stopped using the processor (a lock in spoilt memory) is ended."""
    used, since = -1.0, time.monotonic()
    while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
        time.sleep(0.002)
        if time.monotonic() - since > SECONDS_WITHOUT_WORK:
            before, used = used, _processor_time(child)
            since = time.monotonic()
            if used == before:
                os.kill(child, signal.SIGKILL)
    return ended[1]


def _processor_time(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return float(fields[11]) + float(fields[12])  # utime and stime, proc(5)


def _work(targets: Sequence[Target], recorder: Recorder, stem: Path) -> None:
    _set_up(recorder, stem)
    for target in targets:
        signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TARGET)  # ends the process: one crash more
        report = _run(target)
        recorder.flush(stem.with_suffix(".tsv"))
        _note(stem.with_suffix(".log"), report)


def _until_it_crashes(target: Target, recorder: Recorder, stem: Path) -> None:
    _set_up(recorder, stem)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_PER_TARGET)
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
