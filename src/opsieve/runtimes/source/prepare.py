"""Compiling everything of a source tree once, so that afterwards any runtime is one link."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.flatbuffers import flatc_places
from opsieve.runtimes.source.index import SymbolIndex
from opsieve.runtimes.source.link.tied_objects import tied_object
from opsieve.runtimes.source.objects import (
    Compiled,
    CompileFailure,
    CompileJob,
    Compiler,
    ObjectStore,
    compile_all,
    lacks_header,
)
from opsieve.runtimes.source.objects.compiler import search_path
from opsieve.runtimes.source.objects.known import KnownObjects
from opsieve.runtimes.source.objects.manifest import read_entries
from opsieve.runtimes.source.options import BuildOptions
from opsieve.runtimes.source.prepared import ENTRY, FORMAT, PreparedObjects, Record, load_prepared, save_prepared
from opsieve.runtimes.source.references import References
from opsieve.runtimes.source.seeds import seed_sources
from opsieve.runtimes.source.stamps import Stamps
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.tree_index import tree_index
from opsieve.runtimes.source.workspace import SUPPORT, Workspace, open_workspace


@dataclass(frozen=True)
class Prepared:
    """What came of it."""

    workspace: Workspace
    archive: PreparedObjects
    left_out: Mapping[str, CompileFailure]
    """Sources that need a header that this machine lacks; what they define throws when it is called."""

    failures: Mapping[str, CompileFailure]
    """Sources that do not compile for another reason; a build that needs one of them reports it."""

    compiled: int
    """Objects that were compiled now; the others were there."""

    seconds: float

    @property
    def bytes(self) -> int:
        """Of all objects."""
        return sum(self.archive.record.objects.values())


def prepare(
    tree: SourceTree,
    options: BuildOptions,
    compiler: Compiler,
    store: ObjectStore,
    progress: Progress = SILENT,
    parallel: int | None = None,
) -> Prepared:
    """Compile all sources of a tree for these options; about 45 CPU minutes for PyTorch 2.6.0 the first time.

    Whatever ends the call, Ctrl-C included, what is compiled is kept, and the next call goes on from there. A source
    that does not compile is told of and does not end the call. Raises what opening the workspace raises, and
    StoreFull, UnusableStore, CompilerStopped.
    """
    return prepare_workspace(open_workspace(tree, options, compiler, progress), compiler, store, progress, parallel)


def prepare_workspace(
    workspace: Workspace,
    compiler: Compiler,
    store: ObjectStore,
    progress: Progress = SILENT,
    parallel: int | None = None,
) -> Prepared:
    """The same for a workspace that is open."""
    started = time.monotonic()
    known = load_prepared(workspace)
    if known is not None:
        failures = {name: CompileFailure(name, (message,)) for name, message in known.record.left_out.items()}
        return _result(workspace, known, failures, 0, started)
    with store:
        jobs = {name: workspace.job(name) for name in workspace.sources}
        compiled = compile_all(jobs.values(), store, compiler, parallel=parallel, progress=progress, keep_going=True)
        archive = _archive(workspace, jobs, compiled, compiler, store, progress)
    return _result(workspace, archive, compiled.failures, len(compiled.objects) - compiled.reused, started)


def _result(
    workspace: Workspace,
    archive: PreparedObjects,
    failures: Mapping[str, CompileFailure],
    compiled: int,
    started: float,
) -> Prepared:
    return Prepared(
        workspace,
        archive,
        {name: failure for name, failure in failures.items() if lacks_header(failure)},
        {name: failure for name, failure in failures.items() if not lacks_header(failure)},
        compiled,
        time.monotonic() - started,
    )


def _archive(
    workspace: Workspace,
    jobs: Mapping[str, CompileJob],
    compiled: Compiled,
    compiler: Compiler,
    store: ObjectStore,
    progress: Progress,
) -> PreparedObjects:
    # As SelectiveLink links them; what an archive holds is linked as it is.
    objects = {name: tied_object(path, store) for name, path in sorted(compiled.objects.items())}
    left_out = {name: _message(failure) for name, failure in sorted(compiled.failures.items())}
    references = References.build(objects, (*workspace.sites.by_symbol, ENTRY), progress)
    record = Record(
        format=FORMAT,
        options=workspace.options,
        objects={name: path.stat().st_size for name, path in objects.items()},
        left_out=left_out,
        stand_ins=_stand_ins(tree_index(workspace, progress), references, left_out),
        seeds=seed_sources(workspace.sources),
        stamps=Stamps.of(_foreign(workspace, jobs, compiled.objects, compiler, store)),
    )
    return save_prepared(workspace, objects, references, record)


def _stand_ins(index: SymbolIndex, references: References, left_out: Collection[str]) -> dict[str, str]:
    """Which of the symbols that no object defines a source would, that is left out."""
    if not left_out:
        return {}
    found = ((symbol, candidate.path) for symbol in references.nowhere for candidate in index.by_rules(symbol))
    return {symbol: source for symbol, source in reversed([*found]) if source in left_out}


def _message(failure: CompileFailure) -> str:
    return failure.errors[0] if failure.errors else "it does not compile"


def _foreign(
    workspace: Workspace,
    jobs: Mapping[str, CompileJob],
    objects: Mapping[str, Path],
    compiler: Compiler,
    store: ObjectStore,
) -> Iterator[str]:
    """The headers that were read and that no fingerprint covers, and where these, and `flatc`, were looked for."""
    covered = tuple(f"{folder}/" for folder in (workspace.folder, workspace.generated, SUPPORT))
    of_the_tree = {f"{workspace.tree.root}/{name}" for name in workspace.tree.read_by_builds()}
    known = KnownObjects(store, compiler)
    read = {file for name, path in objects.items() for file in _files_read(jobs[name], path, known, store)}
    searched = {folder for job in list(jobs.values())[:1] for folder in search_path(compiler, job).angled}
    # Profiles, specs, plugins and the like.
    named = {value for job in jobs.values() for flag in job.flags for value in (flag, flag.partition("=")[2])}
    given = {value.removeprefix("@") for value in named if value.removeprefix("@").startswith("/")}
    for file in sorted(read | searched | given | set(flatc_places())):
        if not f"{file}/".startswith(covered) and file not in of_the_tree:
            yield file


def _files_read(job: CompileJob, path: Path, known: KnownObjects, store: ObjectStore) -> Iterator[str]:
    """The headers that an object was compiled with, by the store's manifest of it."""
    key = known.key(job)
    entries = read_entries(store.manifest_path(key)) if key else []
    for entry in entries:
        if store.object_path(entry.object) == path:
            for name in entry.states:
                tag, _, below = name.partition(":")
                if name.startswith("/"):
                    yield name
                elif tag.isdecimal() and int(tag) < len(job.include_folders):
                    yield f"{job.include_folders[int(tag)]}/{below}"
