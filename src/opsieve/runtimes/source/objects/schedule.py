"""Which compiler runs when: the longest first, no more at once than processors and memory allow."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import BaseFileLock

from opsieve.progress import Advance, Progress
from opsieve.runtimes.source.objects.compiler import Compiler, compile_command
from opsieve.runtimes.source.objects.costs import Cost
from opsieve.runtimes.source.objects.errors import CompilerStopped, store_full
from opsieve.runtimes.source.objects.failures import CompileFailure, failure_of, is_disk_full, is_out_of_memory
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.objects.known import KnownObjects
from opsieve.runtimes.source.objects.memory import memory_for_compilers
from opsieve.runtimes.source.objects.running import CompilerRun, Outcome, interrupts_held
from opsieve.runtimes.source.objects.store import ObjectStore

_LOOK_EVERY = 0.01
"""Seconds between looks at the running compilers."""

_ASK_AGAIN = 0.3
"""Seconds until a job that another process compiles is asked for again."""


@dataclass(frozen=True)
class Task:
    """A job that has to be compiled: its key, expected wall clock seconds and bytes of memory.

    `alone` is set after it was killed for want of memory. `not_before`, on the monotonic clock, is set while another
    process compiles the same.
    """

    job: CompileJob
    key: str
    seconds: float
    peak: int
    alone: bool = False
    not_before: float = 0.0


@dataclass(frozen=True)
class _Active:
    task: Task
    run: CompilerRun
    lock: BaseFileLock

    @property
    def object(self) -> Path:
        return self.run.folder / "made.o"


class Schedule:
    """Runs tasks to their end. `objects` and `failures` hold what came of them, by job name."""

    def __init__(
        self,
        tasks: Sequence[Task],
        store: ObjectStore,
        compiler: Compiler,
        known: KnownObjects,
        folder: Path,
        parallel: int,
        keep_going: bool,
    ) -> None:
        self.objects: dict[str, Path] = {}
        self.failures: dict[str, CompileFailure] = {}
        self._waiting = sorted(tasks, key=lambda task: -task.seconds)
        self._active: list[_Active] = []
        self._store, self._compiler, self._known, self._folder = store, compiler, known, folder
        self._parallel, self._keep_going = parallel, keep_going
        self._memory = memory_for_compilers()
        self._total = sum(task.seconds for task in tasks)
        self._done = 0.0
        self._told = 0

    def run(self, progress: Progress) -> None:
        """Compile everything; the stage's unit is a second of one compiler's work."""
        files = f"compiling {len(self._waiting)} file{'s'[: len(self._waiting) != 1]}"
        with progress.stage(files, max(1, round(self._total))) as advance:
            try:
                while self._active or (self._waiting and self._may_start):
                    changed = self._start_one()
                    changed |= self._finish_some()
                    self._tell(advance)
                    if not changed:
                        time.sleep(_LOOK_EVERY)
            finally:
                self._abandon()

    @property
    def _may_start(self) -> bool:
        return self._keep_going or not self.failures

    def _start_one(self) -> bool:
        """Start the longest task that fits; True if anything happened."""
        if not self._may_start or len(self._active) >= self._parallel:
            return False
        now = time.monotonic()
        task = next((task for task in self._waiting if task.not_before <= now and self._fits(task)), None)
        if task is None:
            return False
        self._waiting.remove(task)
        lock = self._store.try_lock(task.key)
        if lock is None:
            self._waiting.append(replace(task, not_before=now + _ASK_AGAIN))
            return False
        try:
            self._begin(task, lock)
        except BaseException:
            lock.release()
            raise
        return True

    def _fits(self, task: Task) -> bool:
        if not self._active:
            return True
        if task.alone or any(active.task.alone for active in self._active):
            return False
        return task.peak + sum(active.task.peak for active in self._active) <= self._memory

    def _begin(self, task: Task, lock: BaseFileLock) -> None:
        # Another process may have compiled it since it was looked for.
        path = self._known.find(task.job, task.key)
        if path is not None:
            self._done += task.seconds
            self.objects[task.job.name] = path
            lock.release()
            return
        folder = self._folder / task.key
        folder.mkdir(exist_ok=True)
        command = compile_command(self._compiler, task.job, folder / "made.o", folder / "made.d")
        with interrupts_held():
            self._active.append(_Active(task, CompilerRun(command, folder), lock))

    def _finish_some(self) -> bool:
        ended = [(active, outcome) for active in self._active if (outcome := active.run.poll()) is not None]
        for active, outcome in ended:
            self._active.remove(active)
            try:
                self._finish(active, outcome)
            finally:
                active.lock.release()
            shutil.rmtree(active.run.folder, ignore_errors=True)
        return bool(ended)

    def _finish(self, active: _Active, outcome: Outcome) -> None:
        task, name = active.task, active.task.job.name
        if outcome.status == 0 and active.object.is_file():
            depfile = active.run.folder / "made.d"
            self.objects[name] = self._known.add(task.job, task.key, active.object, depfile, active.run.started_ns)
            self._store.costs.add(Cost(name, outcome.seconds, outcome.peak))
        elif is_disk_full(outcome.said):
            raise store_full(self._store.root)
        elif is_out_of_memory(outcome.said, outcome.status):
            self._try_alone(task)
            return
        else:
            command = compile_command(self._compiler, task.job, active.object, active.run.folder / "made.d")
            self.failures[name] = failure_of(name, outcome.said, outcome.status, tuple(command))
        self._done += task.seconds

    def _try_alone(self, task: Task) -> None:
        if task.alone:
            raise CompilerStopped(
                "the compiler was killed or ran out of memory, also with nothing beside it",
                where=task.job.source_path,
                expected=f"about {task.peak / (1 << 30):.1f} GB of memory for this file",
                remedy="free memory or add swap and call again: what is compiled is kept",
            )
        self._waiting.append(replace(task, alone=True))

    def _tell(self, advance: Advance) -> None:
        """Running tasks count by their time, up to what was expected of them."""
        running = sum(min(active.run.elapsed, active.task.seconds) for active in self._active)
        reached = int(min(self._done + running, self._total) + 1e-6)
        if self._waiting or self._active:
            reached = min(reached, max(0, round(self._total) - 1))
        else:
            reached = max(1, round(self._total))
        if reached > self._told:
            advance(reached - self._told)
            self._told = reached

    def _abandon(self) -> None:
        for active in self._active:
            active.run.kill()
            active.lock.release()
        self._active.clear()
