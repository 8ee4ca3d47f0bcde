"""Reading the account of a finished link from its objects and its program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from opsieve.code.elf import SHF_ALLOC, SHN_UNDEF, SHT_NOBITS, STT_FUNC, STT_OBJECT, ElfFile, Int64s
from opsieve.errors import GroundTruthMismatch
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import ROOT_KINDS, Sites
from opsieve.runtimes.source.link.account.dominators import Dominators, find_dominators
from opsieve.runtimes.source.link.account.function_names import FunctionNames
from opsieve.runtimes.source.link.account.live_graph import LiveGraph, kernels, live_graph
from opsieve.runtimes.source.link.account.marking import Live, mark
from opsieve.runtimes.source.link.account.needs import Needs, find_needs, reachable
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph, read_program
from opsieve.runtimes.source.link.account.values import FileSizes, KeptOperator, LinkAccount, Need, Sizes
from opsieve.runtimes.source.link.linker import Linker, LinkerKind
from opsieve.runtimes.source.link.linking import LinkInput
from opsieve.select.selection import RuntimeIdentity

_ENTRY = b"main"
"""The start of a program lies in the system's own object, which refers to this."""


def read_account(
    program: Path,
    given: LinkInput,
    names: dict[Path, str],
    sites: Sites,
    linker: Linker,
    runtime: RuntimeIdentity,
) -> LinkAccount:
    """The account of a link that made `program`, not stripped, of what was `given`.

    `names` tells the source file of each object; `runtime` is what the account is for: the tree's version and
    fingerprint. Raises InvalidFile for an object and InvalidLibrary for a program that cannot be read.
    """
    graph = read_program(given.objects)
    output = ElfFile(program, or_program=True)
    live = live_sections(graph, output, given, sites, frames_are_roots=linker.kind is not LinkerKind.GNU)
    reduced = live_graph(graph, live, output, sites.by_symbol, given.roots)
    return _account(graph, reduced, [names.get(path, path.name) for path in given.objects], runtime, _loaded(output))


def live_sections(
    graph: ProgramGraph, program: ElfFile, given: LinkInput, sites: Sites, *, frames_are_roots: bool
) -> Live:
    """What the linker kept. Raises GroundTruthMismatch if the program lacks a registration that should be there."""
    roots = [_ENTRY, *(symbol.encode() for symbol in given.roots), *exported(program)]
    live = mark(graph, roots, frames_are_roots=frames_are_roots)
    there = _registrations(program, sites)
    ours = {name for name, section in _definitions(graph, sites) if live.parents[section] >= 0}
    if ours - there:
        raise GroundTruthMismatch(
            f"the program does not hold {min(ours - there).decode()}, to which live code refers",
            where=program.path,
            expected="the program as it was linked, not stripped",
        )
    if there == ours:
        return live
    # gold and mold keep the whole table, GNU ld at times the first entry of it.
    return mark(graph, [*roots, *sorted(there)], frames_are_roots=frames_are_roots)


def _registrations(program: ElfFile, sites: Sites) -> set[bytes]:
    """The registrations that a program holds, by symbol."""
    symbols = program.symbols[program.symbols["shndx"] != SHN_UNDEF]
    names = program.names_of(symbols["name"].astype(np.int64)) if len(symbols) else []
    return {
        name for name in names if name.startswith(b"opsieve_") and name.decode("utf-8", "replace") in sites.by_symbol
    }


def _definitions(graph: ProgramGraph, sites: Sites) -> Iterator[tuple[bytes, int]]:
    for symbol in sites.by_symbol:
        section = graph.definitions.get(symbol.encode())
        if section is not None:
            yield symbol.encode(), section


def exported(program: ElfFile) -> Iterator[bytes]:
    """The symbols of a program that shared libraries may look up: those they refer to, and those both define."""
    for symbol in program.dynamic_symbols:
        if symbol["shndx"] and symbol["info"] & 15 in (STT_FUNC, STT_OBJECT):
            yield program.name(".dynstr", int(symbol["name"]))


def _loaded(program: ElfFile) -> int:
    return sum(s.size for s in program.sections if s.flags & SHF_ALLOC and s.type != SHT_NOBITS)


def _account(
    graph: ProgramGraph, live: LiveGraph, names: Sequence[str], runtime: RuntimeIdentity, loaded: int
) -> LinkAccount:
    needs = find_needs(live)
    operators = range(live.first_operator, live.first_operator + len(live.operators))
    dominators = find_dominators(live.sources, live.targets, live.weights, live.root, operators)
    functions: dict[str, int] = {}
    found = tuple(_needs(graph, live, needs, functions))
    core = _sizes(live.weights[needs.core].sum(axis=0))
    kept = tuple(_operators(live, needs, dominators))
    return LinkAccount(
        runtime=runtime,
        operators=kept,
        needs=found,
        functions=tuple(functions),
        files=_files(live, names),
        core=core,
        shared=_sizes(live.weights.sum(axis=0)) - core - Sizes.sum(operator.own for operator in kept),
        program_bytes=loaded,
    )


def _needs(graph: ProgramGraph, live: LiveGraph, needs: Needs, functions: dict[str, int]) -> Iterator[Need]:
    names = FunctionNames(graph)
    for path in needs.paths:
        way = names.of(int(live.sections[node]) for node in path.between if node < live.first_operator)
        places = tuple(functions.setdefault(name, len(functions)) for name in way)
        source = None if path.source == live.root else _operator(live, path.source)
        yield Need(source, _operator(live, path.target), places)


def _operators(live: LiveGraph, needs: Needs, dominators: Dominators) -> Iterator[KeptOperator]:
    reach = reachable(live, needs.core)
    below: dict[int, list[OperatorName]] = {}
    for node, above in dominators.above.items():
        for other in above:
            below.setdefault(other, []).append(_operator(live, node))
    own = {node: total.copy() for node, total in dominators.sums.items()}
    for node, above in dominators.above.items():
        for nearest in above[:1]:
            own[nearest] -= dominators.sums[node]
    for place, name in enumerate(live.operators):
        node = live.first_operator + place
        entries = live.entries[name]
        first = next(site for site in entries if site.kind in ROOT_KINDS)
        yield KeptOperator(
            name=name,
            kinds=tuple(sorted({site.kind for site in entries if site.kind in ROOT_KINDS})),
            kernels=kernels(entries),
            file=first.file,
            line=first.line,
            asked=name in live.asked,
            exclusive=_sizes(dominators.sums[node]),
            own=_sizes(own[node]),
            reachable=_sizes(reach[node]),
            only_here=tuple(sorted(below.get(node, ()))),
        )


def _files(live: LiveGraph, names: Sequence[str]) -> tuple[FileSizes, ...]:
    return tuple(sorted(FileSizes(name, _sizes(row)) for name, row in zip(names, live.by_object, strict=True)))


def _operator(live: LiveGraph, node: int) -> OperatorName:
    return live.operators[node - live.first_operator]


def _sizes(row: Int64s) -> Sizes:
    code, constants, data, unwinding = (int(count) for count in row)
    return Sizes(code, constants, data, unwinding)
