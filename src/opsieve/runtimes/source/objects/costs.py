"""What compiling cost before, seconds and memory by job name: for the order of work and an honest progress bar."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import msgspec

from opsieve.runtimes.source.objects.job import CompileJob

UNKNOWN_PEAK = 1 << 30
"""Bytes reserved for a file that was never compiled: C++ with many templates takes that much."""

_UNKNOWN_SECONDS = 5.0
_LONGEST_LOG = 32 << 20


class Cost(msgspec.Struct, frozen=True):
    """One compiler run: wall clock seconds and the largest process in bytes."""

    name: str
    seconds: float
    peak: int


class Costs:
    """A log that runs append to, one line for each compiled job; the last line of a name counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known = _read(path)

    def add(self, cost: Cost) -> None:
        """Remember what a job took."""
        self._known[cost.name] = cost
        # One write of one short line: appended whole, also with several processes at once.
        with self._path.open("ab", buffering=0) as log:
            log.write(msgspec.json.encode(cost) + b"\n")

    def compact(self) -> None:
        """Write every name once. Only for who has the store alone."""
        lines = b"".join(msgspec.json.encode(cost) + b"\n" for cost in _read(self._path).values())
        temporary = self._path.with_suffix(".new")
        temporary.write_bytes(lines)
        temporary.replace(self._path)

    def peak(self, job: CompileJob) -> int:
        """Bytes that compiling this job is expected to take."""
        known = self._known.get(job.name)
        return known.peak if known else UNKNOWN_PEAK

    def seconds(self, jobs: Sequence[CompileJob]) -> dict[str, float]:
        """Expected seconds by name: as before, else what the known ones of these jobs take at the median."""
        known = {job.name: self._known[job.name].seconds for job in jobs if job.name in self._known}
        usual = statistics.median(known.values()) if known else _UNKNOWN_SECONDS
        return {job.name: known.get(job.name, usual) for job in jobs}


def _read(path: Path) -> dict[str, Cost]:
    """Lines that a killed process or a full disk left half-written are passed over."""
    known: dict[str, Cost] = {}
    decoder = msgspec.json.Decoder(Cost)
    if not path.is_file() or path.stat().st_size > _LONGEST_LOG:
        return known
    for line in path.read_bytes().splitlines():
        try:
            cost = decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if 0 <= cost.seconds < 1e6 and 0 <= cost.peak < 1 << 50:
            known[cost.name] = cost
    return known
