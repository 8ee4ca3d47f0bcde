"""A child process with torch that tells events, one JSON line each: started, listened to, and always ended."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from opsieve.errors import MissingInstallation
from opsieve.installed import ChildFailed

SCRIPT = Path(__file__).parent / "child" / "main.py"

STARTUP_SECONDS = 600.0
"""How long a child may take to import torch and to begin."""

_PATIENT_THREADS = {"OMP_WAIT_POLICY": "PASSIVE"}
"""OpenMP's threads spin while they wait. On a busy machine with two cores that made a small call 15 times slower."""

_TOLD = 4000
"""Bytes of what a crashed child said last that are kept."""


@dataclass(frozen=True, slots=True)
class Runtime:
    """A Python, and the torch that it is to use."""

    python: Path
    package: Path
    """The folder `torch` that must be imported."""

    on_path: bool = False
    """Whether the folder that holds `package` goes onto PYTHONPATH, as for a slim torch."""

    environment: Mapping[str, str] = field(default_factory=dict)
    neutral: Mapping[str, str] = field(default_factory=dict)
    """What to replace in error texts, since it must differ between two runtimes: paths and versions."""


class SilentChild(ChildFailed):
    """A child process gave no answer for too long."""

    def __init__(self, seconds: float) -> None:
        super().__init__(SCRIPT, -signal.SIGKILL, "")
        self.problem = f"no answer within {seconds:g} seconds"


@dataclass(slots=True)
class Child:
    """A running child: its events as they come, and how it ended."""

    runtime: Runtime
    process: subprocess.Popen[bytes]
    stderr: IO[bytes]
    patience: float = STARTUP_SECONDS
    """Seconds to wait for the next event; may be changed between two."""

    def events(self) -> Iterator[dict[str, Any]]:
        """Decode its lines until it closes stdout.

        Raises SilentChild when none comes in time, MissingInstallation when it has imported another torch.
        """
        for line in self._lines():
            try:
                event = json.loads(line)
            except ValueError as error:
                raise ChildFailed(SCRIPT, 0, f"it said {line[:80]!r}") from error
            if "torch" in event:
                self._expect_torch(Path(event["torch"]))
            yield event

    def end_well(self) -> None:
        """Wait for the end. Raises ChildFailed with what it said last when that was a crash."""
        try:
            status = self.process.wait(self.patience)
        except subprocess.TimeoutExpired as error:
            raise SilentChild(self.patience) from error
        if status != 0:
            raise ChildFailed(SCRIPT, status, self._said())

    def _expect_torch(self, found: Path) -> None:
        if found.resolve() != self.runtime.package.resolve():
            raise MissingInstallation(
                f"another PyTorch is imported: {found}",
                expected=str(self.runtime.package),
                remedy="look for this path in PYTHONPATH, and for .pth files that change sys.path",
            )

    def _lines(self) -> Iterator[bytes]:
        stdout = self.process.stdout
        if stdout is None:  # never: we have asked for a pipe
            return
        pending = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while selector.select(self.patience):
                piece = os.read(stdout.fileno(), 1 << 16)
                if not piece:
                    return
                *lines, pending = (pending + piece).split(b"\n")
                yield from lines
        raise SilentChild(self.patience)

    def _said(self) -> str:
        size = self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, size - _TOLD))
        return self.stderr.read().decode(errors="replace")


@contextmanager
def started_child(runtime: Runtime, switches: Mapping[str, str], request: dict[str, Any]) -> Iterator[Child]:
    """Start a child with `request`; whatever happens, it is gone afterwards."""
    with tempfile.TemporaryFile() as stderr:
        process = _start(runtime, switches, stderr)
        try:
            # A child that dies before it has read everything is no fault here: its status tells more.
            with contextlib.suppress(BrokenPipeError), process.stdin or contextlib.nullcontext() as stdin:
                if stdin is not None:
                    stdin.write(json.dumps(request).encode())
            yield Child(runtime, process, stderr)
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _start(runtime: Runtime, switches: Mapping[str, str], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    variables = {**_PATIENT_THREADS, **os.environ, **runtime.environment, **switches}
    if runtime.on_path:
        theirs = variables.get("PYTHONPATH")
        variables["PYTHONPATH"] = str(runtime.package.parent.absolute()) + (os.pathsep + theirs if theirs else "")
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen([runtime.python, "-P", SCRIPT], stdin=pipe, stdout=pipe, stderr=stderr, env=variables)
    except OSError as error:
        raise MissingInstallation("cannot start this Python interpreter", where=runtime.python) from error
