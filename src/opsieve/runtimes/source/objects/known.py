"""Finding the object of a job in the store, and remembering one that was just compiled."""

from __future__ import annotations

import posixpath
import secrets
from pathlib import Path

from opsieve.runtimes.source.objects.compiler import COMPILER_FOLDER, Compiler, SearchPath, search_path
from opsieve.runtimes.source.objects.files import Files
from opsieve.runtimes.source.objects.includes import read_depfile
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.objects.manifest import Entry, add_entry, holds, job_key, observed, read_entries
from opsieve.runtimes.source.objects.store import ObjectStore
from opsieve.runtimes.source.objects.surroundings import Surroundings, outer_source_folder


class KnownObjects:
    """The store as one run of one compiler sees it; headers are looked at once per run."""

    def __init__(self, store: ObjectStore, compiler: Compiler) -> None:
        self._store = store
        self._compiler = compiler
        self._files = Files(store.known_files)
        self._searches: dict[tuple[object, ...], SearchPath] = {}
        self._surroundings: dict[tuple[object, ...], Surroundings] = {}

    def key(self, job: CompileJob) -> str | None:
        """What the job's manifest is found by; None if its source is not there."""
        return job_key(self._compiler, job, self._search(job), self._around(job))

    def find(self, job: CompileJob, key: str) -> Path | None:
        """The object of the job if it was compiled before with the same contents."""
        manifest = self._store.manifest_path(key)
        around = self._around(job)
        for entry in read_entries(manifest):
            path = self._store.object_path(entry.object)
            if holds(entry, around) and self._store.use(path, entry.size):
                self._store.use(manifest)
                return path
        return None

    def add(self, job: CompileJob, key: str, made: Path, depfile: Path, started_ns: int) -> Path:
        """Move a new object into the store, and remember what it was made of.

        If anything it was made of changed since `started_ns`, nobody knows what the compiler saw: then the object
        serves this run only and is compiled again in the next.
        """
        files = self._files.renewed(started_ns)
        search = self._search(job)
        around = Surroundings(job, search, files)
        # For what is not preprocessed no file is written: it reads nothing but itself.
        read = read_depfile(depfile) or [job.source_path] * (job.language == "assembler")
        size = made.stat().st_size
        entry = observed(key, size, [posixpath.join(COMPILER_FOLDER, path) for path in read], around)
        unchanged = job_key(self._compiler, job, search, around) == key and files.newest < started_ns
        if not (read and unchanged and all(entry.states.values()) and _writable(entry)):
            return self._store.keep(made, secrets.token_hex(16))
        path = self._store.keep(made, entry.object)
        manifest = self._store.manifest_path(key)
        add_entry(manifest, entry)
        self._store.use(manifest)
        return path

    def _search(self, job: CompileJob) -> SearchPath:
        seen_by = (job.language, job.language_flags, job.include_folders)
        search = self._searches.get(seen_by)
        if search is None:
            search = self._searches[seen_by] = search_path(self._compiler, job)
        return search

    def _around(self, job: CompileJob) -> Surroundings:
        """Shared by jobs that name and find headers the same way."""
        search = self._search(job)
        seen_by = (search, job.include_folders, outer_source_folder(job))
        around = self._surroundings.get(seen_by)
        if around is None:
            around = self._surroundings[seen_by] = Surroundings(job, search, self._files)
        return around


def _writable(entry: Entry) -> bool:
    """Names that are not UTF-8 cannot be written to a manifest."""
    try:
        "".join((*entry.states, *entry.suspicions, *entry.suspicions.values())).encode()
    except UnicodeEncodeError:
        return False
    return True
