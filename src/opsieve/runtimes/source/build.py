"""The main job from source: from models and a source tree to a folder with a runtime."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from filelock import FileLock

from opsieve.errors import InvalidFile
from opsieve.graph.scopes import Scope
from opsieve.models.needs import ModelNeeds
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.capabilities import capabilities_of
from opsieve.runtimes.source.doctor import diagnose
from opsieve.runtimes.source.index import NOTHING_LEARNED, Learned
from opsieve.runtimes.source.libraries import libraries
from opsieve.runtimes.source.link.account import LinkAccount, account_to_json, read_account, selection_of
from opsieve.runtimes.source.link.linker import Linker, find_linker, require_usable
from opsieve.runtimes.source.link_prepared import link_prepared
from opsieve.runtimes.source.objects import Compiler, ObjectStore
from opsieve.runtimes.source.options import BuildOptions
from opsieve.runtimes.source.output import sizes
from opsieve.runtimes.source.output.folder import refuse_output, write_folder
from opsieve.runtimes.source.output.parts import RUNNER, RuntimeParts
from opsieve.runtimes.source.prepared import load_prepared
from opsieve.runtimes.source.seeds import seed_sources
from opsieve.runtimes.source.selective_link import Linked, SelectiveLink
from opsieve.runtimes.source.tree import SourceTree
from opsieve.runtimes.source.tree_index import tree_index
from opsieve.runtimes.source.wanted import Policy, Wanted, require_engine, require_loadable, wanted
from opsieve.runtimes.source.workspace import Workspace, open_workspace, workspace_folders
from opsieve.select.choose import ExtraOperator
from opsieve.select.selection import RuntimeIdentity, Selection


@dataclass(frozen=True)
class SourceRequest:
    """What a build from source is asked for."""

    tree: SourceTree
    models: tuple[ModelNeeds, ...]
    extra: tuple[ExtraOperator, ...] = ()
    options: BuildOptions = field(default_factory=BuildOptions)
    compiler: str | None = None
    """A name or path; None for `$CXX` or the first there is."""

    linker: str | None = None
    """A name for `-fuse-ld=`; None for the first that prunes exactly."""

    policy: Policy = Policy.STATIC
    scopes: frozenset[Scope] = frozenset({Scope.INFERENCE})
    folding: str = "all"
    """Of equal functions, if the linker can: "all", "safe" or "none"."""

    parallel: int | None = None
    """Compilers at once; None for one per processor."""

    command: tuple[str, ...] = ("opsieve",)
    """The words that asked for it, for the record."""


@dataclass(frozen=True)
class SourceReport:
    """What a build made."""

    request: SourceRequest
    linker: Linker
    wanted: Wanted
    selection: Selection
    account: LinkAccount
    left_out: Mapping[str, tuple[str, str]]
    """What live code refers to and this machine cannot compile: function or variable -> (source, reason)."""

    always: tuple[str, ...]
    """Registrations of linked files that stay in any case, as `file:line: reason`."""

    tree_operator_count: int
    program_bytes: int
    """Of the runner, without symbols."""

    rounds: int
    compiled: int
    object_count: int


def build(
    request: SourceRequest, output: Path | None, *, force: bool = False, progress: Progress = SILENT
) -> SourceReport:
    """Link a runtime for the models, compiling what is not compiled yet, and write it to the folder `output`, if given.

    Raises InvalidModel for a model that the runtime could not load, UnknownOperator, MissingInstallation, and what
    opening the workspace, compiling, linking and writing raise. Everything that was compiled is kept in any case.
    """
    require_loadable(request.models, request.options.interpreter)
    require_engine(request.models, request.options.quantized_engine)
    if output is not None:
        refuse_output(output, force=force)
    compiler = Compiler.find(request.compiler)
    linker = find_linker(compiler, request.linker)
    require_usable(linker)
    if request.compiler is None and not workspace_folders(request.tree, request.options, compiler)[1].is_dir():
        diagnose(request.tree).demand()  # before the first long compilation, not in the middle of it
    workspace = open_workspace(request.tree, request.options, compiler, progress)
    roots = wanted(request.models, request.extra, workspace.sites, request.policy, request.scopes)
    with ObjectStore.of_user() as store, tempfile.TemporaryDirectory(prefix="opsieve-link-") as folder:
        linked = link_runtime(request, workspace, compiler, linker, store, roots, Path(folder) / "run", progress)
        with progress.stage("reading what was kept"):
            account = _account(workspace, linker, linked)
        selection = selection_of(account, roots, request.models)
        parts = _parts(request, workspace, compiler, linker, linked, selection, account)
        if output is not None:
            write_folder(parts, output, force=force, progress=progress)
    return SourceReport(
        request=request,
        linker=linker,
        wanted=roots,
        selection=selection,
        account=account,
        left_out={item.symbol: (item.source, item.reason) for item in linked.left_out},
        always=tuple(text for text in workspace.always if text.partition(":")[0] in linked.objects),
        tree_operator_count=len(workspace.sites.operators),
        program_bytes=account.program_bytes,
        rounds=linked.rounds,
        compiled=linked.compiled,
        object_count=len(linked.objects),
    )


def link_runtime(
    request: SourceRequest,
    workspace: Workspace,
    compiler: Compiler,
    linker: Linker,
    store: ObjectStore,
    roots: Wanted,
    program: Path,
    progress: Progress,
) -> Linked:
    """Link the runner for `roots` to `program`, by the prepared archive if there is one, else in rounds."""
    work = SelectiveLink(
        workspace,
        compiler,
        linker,
        store,
        tree_index(workspace, progress),
        _learned(workspace),
        libraries(request.options),
        (*_position(request.options), *linker.folding(request.folding)),
        progress,
        request.parallel,
        frozenset(roots.left_out),
    )
    prepared = load_prepared(workspace)
    if prepared is not None:
        return link_prepared(work, prepared, (*prepared.record.seeds, RUNNER, *roots.sources), roots.symbols, program)
    seeds = dict.fromkeys((*seed_sources(workspace.sources), RUNNER, *roots.sources))
    try:
        return work.run(seeds, roots.symbols, program)
    finally:
        _remember(workspace, work.learned)


def _position(options: BuildOptions) -> tuple[str, ...]:
    return ("-pie",) if options.position_independent else ("-no-pie",)


def _account(workspace: Workspace, linker: Linker, linked: Linked) -> LinkAccount:
    names = {path: name for name, path in linked.objects.items()}
    identity = RuntimeIdentity(workspace.tree.version, workspace.tree.fingerprint())
    return read_account(linked.program, linked.given, names, workspace.sites, linker, identity)


def _parts(
    request: SourceRequest,
    workspace: Workspace,
    compiler: Compiler,
    linker: Linker,
    linked: Linked,
    selection: Selection,
    account: LinkAccount,
) -> RuntimeParts:
    return RuntimeParts(
        version=workspace.tree.version,
        interpreter=request.options.interpreter,
        program=linked.program,
        objects=linked.objects,
        roots=linked.given.roots,
        link_flags=(*linker.flags, *linked.given.flags),
        libraries=linked.given.libraries,
        compiler=compiler,
        compile=workspace.job(RUNNER),
        selection=selection,
        sizes=_size_tables(account),
        account=account_to_json(account),
        command=request.command,
        capabilities=capabilities_of(workspace, request.policy, linked.objects),
        header_record=workspace.folder / "headers.json",
    )


def _size_tables(account: LinkAccount) -> sizes.SizeTables:
    return sizes.SizeTables(
        account.program_bytes,
        tuple(sizes.SizeRow(str(operator.name), operator.own.total) for operator in account.operators),
        tuple(sizes.SizeRow(file.name, file.sizes.total) for file in account.files),
    )


def _learned(workspace: Workspace) -> Learned:
    try:
        return Learned.load(workspace.folder / "learned.msgpack")
    except InvalidFile:
        return NOTHING_LEARNED


def _remember(workspace: Workspace, learned: Learned) -> None:
    """Add to what other builds learned in the meantime."""
    with FileLock(workspace.folder / "learned.lock"):
        learned.merged(_learned(workspace)).save(workspace.folder / "learned.msgpack")
