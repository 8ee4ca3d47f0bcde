"""How much memory a command and all its child processes take at once."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_INTERVAL = 0.05
"""Seconds between two looks."""


def peak_memory(command: Sequence[str | Path], environment: Mapping[str, str]) -> int:
    """The most bytes that the process tree had in memory at one time, seen every 50 ms.

    Proportional set size (smaps_rollup of Linux): a page that three processes share counts once, not three times.
    """
    process = subprocess.Popen(list(command), env=dict(environment), stdout=subprocess.DEVNULL)
    seen = [0]

    def watch() -> None:
        while process.poll() is None:
            seen.append(sum(_pss(pid) for pid in (process.pid, *_descendants(process.pid))))
            time.sleep(_INTERVAL)

    watcher = threading.Thread(target=watch)
    watcher.start()
    status = process.wait()
    watcher.join()
    if status != 0:
        raise subprocess.CalledProcessError(status, list(command))
    return max(seen)


def _descendants(pid: int) -> Iterator[int]:
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(child) for child in file.read_text().split()]
        except OSError:  # it has just ended
            continue
        for child in children:
            yield child
            yield from _descendants(child)


def _pss(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
