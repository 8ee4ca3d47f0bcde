"""Compiling many jobs: what the store has is taken from it, the rest is compiled, several at once, and kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.objects.compiler import Compiler
from opsieve.runtimes.source.objects.errors import CompileFailed, store_errors
from opsieve.runtimes.source.objects.failures import CompileFailure
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.objects.known import KnownObjects
from opsieve.runtimes.source.objects.schedule import Schedule, Task
from opsieve.runtimes.source.objects.store import ObjectStore

_SHOWN_FAILURES = 3


@dataclass(frozen=True)
class Compiled:
    """Objects by job name, valid until the store is closed; failures by job name; how many objects were there already.

    A name in neither was not tried because another job had failed.
    """

    objects: Mapping[str, Path]
    failures: Mapping[str, CompileFailure]
    reused: int

    def require(self) -> Mapping[str, Path]:
        """The objects. Raises CompileFailed, with the first messages of the compiler, if any job failed."""
        if not self.failures:
            return self.objects
        shown = list(self.failures.values())[:_SHOWN_FAILURES]
        more = len(self.failures) - len(shown)
        lines = [line for failure in shown for line in (f"{failure.name}:", *(f"  {told}" for told in failure.errors))]
        files = "1 source file does" if len(self.failures) == 1 else f"{len(self.failures)} source files do"
        raise CompileFailed(
            "\n".join((f"{files} not compile", *lines, *([f"and {more} more"] if more else []))),
            where=shown[0].where,
            remedy="look at the first message; call again after a change: what compiled is kept",
        )


def compile_all(
    jobs: Iterable[CompileJob],
    store: ObjectStore,
    compiler: Compiler,
    *,
    parallel: int | None = None,
    progress: Progress = SILENT,
    keep_going: bool = False,
) -> Compiled:
    """An object for every job. At most `parallel` compilers run at once (default: the processors this process may use).

    After a failure no further job is started unless `keep_going`; what runs is finished and kept. Whatever ends this
    call, Ctrl-C included, no compiler goes on and no half-made object stays. Raises StoreFull, UnusableStore,
    CompilerStopped (the compiler was killed or ran out of memory, also when tried alone) or MissingInstallation;
    ValueError for two different jobs of one name.
    """
    named = _by_name(jobs)
    store.hold()
    with store_errors(store.root):
        known = KnownObjects(store, compiler)
        objects, missing, failures = _look_up(named, store, known, progress)
        reused = len(objects)
        if missing and (keep_going or not failures):
            with store.work_folder() as folder:
                schedule = Schedule(missing, store, compiler, known, folder, parallel or _processors(), keep_going)
                schedule.run(progress)
            objects.update(schedule.objects)
            failures.update(schedule.failures)
    return Compiled({name: objects[name] for name in named if name in objects}, failures, reused)


def _by_name(jobs: Iterable[CompileJob]) -> dict[str, CompileJob]:
    named: dict[str, CompileJob] = {}
    for job in jobs:
        if named.setdefault(job.name, job) != job:
            raise ValueError(f"two different jobs are called {job.name}")
    return named


def _look_up(
    named: Mapping[str, CompileJob], store: ObjectStore, known: KnownObjects, progress: Progress
) -> tuple[dict[str, Path], list[Task], dict[str, CompileFailure]]:
    objects: dict[str, Path] = {}
    missing: list[Task] = []
    failures: dict[str, CompileFailure] = {}
    seconds = store.costs.seconds(list(named.values()))
    with progress.stage("looking for compiled objects", len(named)) as advance:
        for name, job in named.items():
            key = known.key(job)
            path = known.find(job, key) if key else None
            if key is None:
                failures[name] = CompileFailure(name, ("the source file cannot be read",), job.source_path)
            elif path is None:
                missing.append(Task(job, key, seconds[name], store.costs.peak(job)))
            else:
                objects[name] = path
            advance(1)
    return objects, missing, failures


def _processors() -> int:
    return len(os.sched_getaffinity(0))
