"""One compiler at work in a child process."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from opsieve.runtimes.source.objects.compiler import COMPILER_FOLDER, compiler_environment
from opsieve.runtimes.source.objects.errors import CompilerStopped

_LARGEST_MESSAGES = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """How a compiler ended. `status` is negative for a signal; `peak` is the largest of its processes in bytes."""

    status: int
    seconds: float
    peak: int
    said: bytes


@contextmanager
def interrupts_held() -> Iterator[None]:
    """Let Ctrl-C wait, so that no process is started that nobody knows of. It then comes at the end of this."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        # Either it ends this process at once, or it comes to another thread.
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    # To block the signal instead would not do: then another thread, such as that of a progress bar, receives it.
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])


class CompilerRun:
    """A compiler with all its processes, in a group of their own, so that they can be ended together.

    The terminal's Ctrl-C does not reach that group: whoever started a run has to `kill` it when interrupted itself.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self.folder = folder
        # The time by the clock of the file system, to tell what changed since.
        started = folder / "started"
        started.touch()
        self.started_ns = started.stat().st_ctime_ns
        self._started = time.monotonic()
        # In memory: on a full disk the compiler could not even say so.
        self._messages = os.fdopen(os.memfd_create("messages"), "r+b")
        try:
            self._process = subprocess.Popen(
                command,
                cwd=COMPILER_FOLDER,
                env=compiler_environment(folder),
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=self._messages,
                start_new_session=True,
            )
        except (FileNotFoundError, PermissionError, BlockingIOError) as error:
            raise CompilerStopped(f"the compiler does not start: {error.strerror}", where=command[0]) from error

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def poll(self) -> Outcome | None:
        """How it ended; None while it runs."""
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        return self._ended(status, usage) if pid else None

    def kill(self) -> None:
        """End it and everything it started, and wait until it is gone."""
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(self._process.pid, 0)
            self._ended(status, usage)

    def _ended(self, status: int, usage: resource.struct_rusage) -> Outcome:
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        with self._messages:
            self._messages.seek(0)
            said = self._messages.read(_LARGEST_MESSAGES)
        return Outcome(code, self.elapsed, usage.ru_maxrss * 1024, said)
