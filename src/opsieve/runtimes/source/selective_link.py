"""The link decides what is compiled: compile, link, place what live code misses, and again until nothing is missing.

With section garbage collection a linker reports only what live code refers to, so nothing is compiled that the program
does not need, but for a wrong guess of the index, which the object itself then refutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from opsieve.errors import BuildFailed
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.index import Learned, SymbolIndex, read_object
from opsieve.runtimes.source.link.left_out import write_left_out
from opsieve.runtimes.source.link.linker import Linker
from opsieve.runtimes.source.link.linking import LinkInput, LinkOutcome, link
from opsieve.runtimes.source.link.listed import DEFINITION, entries_in, write_list
from opsieve.runtimes.source.link.stand_ins import StandIn, write_stand_ins
from opsieve.runtimes.source.link.tied_objects import tied_object
from opsieve.runtimes.source.objects import (
    CompileFailure,
    CompileJob,
    Compiler,
    ObjectStore,
    cause,
    compile_all,
    lacks_header,
)
from opsieve.runtimes.source.seeds import REGISTRAR
from opsieve.runtimes.source.workspace import Workspace

MAX_ROUNDS = 60
_SHOWN = 5


@dataclass(frozen=True)
class Linked:
    """A finished link. Paths are valid until the object store is closed."""

    program: Path
    """Not stripped."""

    given: LinkInput
    objects: Mapping[str, Path]
    """Source name -> object, of everything that was linked."""

    left_out: tuple[StandIn, ...]
    """What live code refers to and this machine cannot compile; each throws when it is called."""

    rounds: int
    compiled: int
    """Objects that had to be compiled now."""


@dataclass
class SelectiveLink:
    """One program being put together. `learned` grows; `run` may be called once."""

    workspace: Workspace
    compiler: Compiler
    linker: Linker
    store: ObjectStore
    index: SymbolIndex
    learned: Learned
    libraries: tuple[str, ...]
    flags: tuple[str, ...] = ()
    progress: Progress = SILENT
    parallel: int | None = None
    left_out: frozenset[str] = frozenset()
    """Symbols of operators to leave out although code refers to them."""

    _listed: frozenset[str] | None = None
    """The entries that are registered, for a linker that cannot tell them by itself."""

    _objects: dict[str, Path] = field(default_factory=dict)
    _refused: dict[str, CompileFailure] = field(default_factory=dict)
    _stand_ins: dict[str, StandIn] = field(default_factory=dict)
    _compiled: int = 0

    def run(self, seeds: Iterable[str], roots: tuple[str, ...], output: Path) -> Linked:
        """Link a program that keeps `roots`, from `seeds` (source names) and whatever they need.

        Raises BuildFailed for a symbol that no source defines, CompileFailed for a source that does not compile.
        """
        if not self.linker.is_exact:
            self._listed = frozenset(roots)
        self._compile(dict.fromkeys(seeds, ()), required=True)
        for number in range(1, MAX_ROUNDS + 1):
            objects = (*self._objects.values(), *self._written_objects(output))
            given = LinkInput(objects, roots, self.libraries, self.flags)
            with self.progress.stage(f"linking, round {number}"):
                outcome = link(self.compiler, self.linker, given, output)
            if not outcome.is_complete:
                self._compile(self._place(outcome), required=False)
            elif not self._list_grows(output):
                self._check_roots(roots, output)
                left_out = tuple(self._stand_ins.values())
                return Linked(output, given, dict(self._objects), left_out, number, self._compiled)
        raise BuildFailed(f"the link was not complete after {MAX_ROUNDS} rounds", where=output)

    def _check_roots(self, roots: tuple[str, ...], program: Path) -> None:
        """A linker that loses a registration, as mold can, must not pass for one that pruned it."""
        lost = sorted(set(roots) - entries_in(program, roots))
        if lost:
            raise BuildFailed(
                f"the linker dropped {len(lost)} of the {len(roots)} registrations that it was told to keep",
                where=program.name,
                remedy="--linker lld",
            )

    def _list_grows(self, program: Path) -> bool:
        """Whether a program holds entries that it does not list; they are listed from then on."""
        if self._listed is None:
            return False
        found = entries_in(program, self.workspace.sites.by_symbol.keys() - self.left_out)
        grows = found != self._listed
        self._listed = found
        return grows

    def _place(self, outcome: LinkOutcome) -> dict[str, tuple[str, ...]]:
        """Source name -> the missing symbols that it may define."""
        wanted: dict[str, list[str]] = {}
        unplaced: list[str] = []
        for symbol, references in outcome.undefined.items():
            name = self._source_of(symbol)
            if name is not None:
                wanted.setdefault(name, []).append(symbol)
            elif not self._stand_in(symbol):
                unplaced.append(str(self.index.unplaced(symbol, references, self.learned)))
        if unplaced and not wanted:
            more = len(unplaced) - _SHOWN
            raise BuildFailed(
                "\n".join((*unplaced[:_SHOWN], *([f"and {more} more"] if more > 0 else []))),
                where=self.workspace.tree.root,
                remedy="opsieve doctor --source tells of missing headers and libraries",
            )
        return {name: tuple(symbols) for name, symbols in wanted.items()}

    def _source_of(self, symbol: str) -> str | None:
        site = self.workspace.sites.by_symbol.get(symbol)
        if site is not None:
            return site.file if site.file not in self._objects else None
        for candidate in self.index.candidates(symbol, self.learned):
            if candidate.path not in self._refused and candidate.path not in self._objects:
                return candidate.path
        return None

    def _stand_in(self, symbol: str) -> bool:
        """Whether the symbol is missing because of a source that cannot be compiled here; it then gets a stand-in."""
        for candidate in self.index.by_rules(symbol):
            failure = self._refused.get(candidate.path)
            if failure is not None:
                reason = cause(failure.errors[0]) if failure.errors else ""
                self._stand_ins[symbol] = StandIn(symbol, candidate.path, reason)
                return True
        return False

    def _written_objects(self, output: Path) -> tuple[Path, ...]:
        """The objects of sources that are written for this link."""
        jobs = []
        flags = self.workspace.job(REGISTRAR).flags
        if self._stand_ins:
            source = output.with_name("stand_ins.cpp")
            write_stand_ins(self._stand_ins.values(), source)
            jobs.append(CompileJob("opsieve/stand_ins.cpp", source, flags))
        if self.left_out:
            source = output.with_name("left_out.cpp")
            write_left_out(self.left_out, source)
            jobs.append(CompileJob("opsieve/left_out.cpp", source, flags))
        if self._listed is not None:
            source = output.with_name("listed.cpp")
            write_list(self._listed, source)
            jobs.append(CompileJob("opsieve/listed.cpp", source, flags))
        return tuple(compile_all(jobs, self.store, self.compiler).require().values()) if jobs else ()

    def _job(self, name: str) -> CompileJob:
        job = self.workspace.job(name)
        if name == REGISTRAR and self._listed is not None:
            return replace(job, flags=(*job.flags, DEFINITION))
        return job

    def _compile(self, wanted: Mapping[str, tuple[str, ...]], *, required: bool) -> None:
        jobs = [self._job(name) for name in wanted]
        compiled = compile_all(
            jobs, self.store, self.compiler, parallel=self.parallel, progress=self.progress, keep_going=not required
        )
        self._compiled += len(compiled.objects) - compiled.reused
        if required or any(not lacks_header(failure) for failure in compiled.failures.values()):
            compiled.require()
        self._refused.update(compiled.failures)
        facts = []
        for name, path in compiled.objects.items():
            symbols = read_object(path)
            asked = frozenset(wanted[name])
            facts.append(Learned.from_object(name, symbols.strong | (symbols.weak & asked), asked))
            if required or not symbols.defined.isdisjoint(asked):
                self._objects[name] = tied_object(path, self.store, listed=self._listed is not None)
        self.learned = self.learned.merged(*facts)
