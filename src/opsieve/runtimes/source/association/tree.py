"""Rewriting all sources of a tree that register or dispatch operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from opsieve.operators import OperatorName
from opsieve.progress import SILENT, Progress
from opsieve.runtimes.source.association.class_set_up import MARK, SetUps
from opsieve.runtimes.source.association.cpp_text import CppText
from opsieve.runtimes.source.association.rewrite import Rewriter, Scanned, distinct_symbols, mentions_operators, scan
from opsieve.runtimes.source.association.sites import Site, SiteKind, Sites

PreprocessFile = Callable[[str, str], str]
"""Name of a source, its text -> what the preprocessor makes of it."""

PatchFile = Callable[[str, str], str]
"""Name of a source, its text -> its text as it should be."""

PARALLEL = 2


def _as_it_is(name: str, text: str) -> str:
    return text


@dataclass(frozen=True)
class Associated:
    """The rewritten sources and what they register."""

    sources: Mapping[str, str]
    """Name -> new text; only files in which something changed."""

    sites: Sites
    always: tuple[str, ...]
    """Registrations that no operator owns, as `file:line: reason`: they stay whenever their file is linked."""


def associate(
    files: Mapping[str, Path], preprocess: PreprocessFile, progress: Progress = SILENT, patch: PatchFile = _as_it_is
) -> Associated:
    """Rewrite the files that need it. `files`: name -> path; names are what sites and messages call them.

    `patch` changes the text of a file beforehand.
    """
    texts, patched, classes = {}, {}, []
    for name, path in files.items():
        original = path.read_text(encoding="utf-8", errors="surrogateescape")
        text = patch(name, original)
        if MARK in text:
            classes.append(CppText(text, name))
        if mentions_operators(text):
            texts[name] = text
        elif text != original:
            patched[name] = f'#line 1 "{name}"\n{text}'
    with progress.stage("reading registrations", len(texts)) as advance:

        def read(name: str) -> Scanned:
            scanned = scan(name, texts[name], lambda text: preprocess(name, text))
            scanned = _without_absent(scanned, lambda text: preprocess(name, text))
            advance(1)
            return scanned

        with ThreadPoolExecutor(PARALLEL) as pool:
            scans = distinct_symbols(pool.map(read, sorted(texts)))
    sites = Sites(site for scanned in scans for site in scanned.sites)
    rewriter = Rewriter(_kernels(sites), sites.operators, SetUps.read(classes))
    changed = [scanned for scanned in scans if scanned.sites or scanned.handles or scanned.lookups]
    return Associated(
        patched | {scanned.source.path: rewriter.rewrite(scanned) for scanned in changed},
        sites,
        tuple(reason for scanned in scans for reason in scanned.untouched),
    )


def _kernels(sites: Sites) -> dict[OperatorName, tuple[str, ...]]:
    found: dict[OperatorName, list[str]] = defaultdict(list)
    for site in sites.all:
        if site.kind is SiteKind.KERNEL:
            found[site.operator].append(site.symbol)
    return {operator: tuple(symbols) for operator, symbols in found.items()}


def _without_absent(scanned: Scanned, preprocess: Callable[[str], str]) -> Scanned:
    """Leave out blocks that the preprocessor removes: their symbols will not exist, so nothing may refer to them.

    Only asked where a block stands within a condition; the preprocessor takes half a second.
    """
    if not any(_conditional(scanned.source, block.start) for block in scanned.blocks):
        return scanned
    marked, position = "", 0
    for number, block in enumerate(scanned.blocks):
        for place, statement in enumerate(block.statements):
            marked += scanned.source.text[position : statement.start] + f" opsieve_here_{number}_{place}; "
            position = statement.start
    words = set(preprocess(marked + scanned.source.text[position:]).replace(";", " ").split())
    blocks, sites, known = [], [], iter(scanned.sites)
    for number, block in enumerate(scanned.blocks):
        present = []
        for place, statement in enumerate(block.statements):
            site: Site = next(known)
            if f"opsieve_here_{number}_{place}" in words:
                present.append(statement)
                sites.append(site)
        blocks.append(replace(block, statements=tuple(present)))
    return replace(scanned, blocks=tuple(blocks), sites=(*sites, *known))


def _conditional(source: CppText, position: int) -> bool:
    """Whether a position lies within an `#if` that is not the whole file."""
    depth = 0
    for line in source.plain[:position].splitlines():
        word = line.lstrip()
        if word.startswith("#"):
            directive = word[1:].lstrip()
            depth += directive.startswith("if")
            depth -= directive.startswith("endif")
    return depth > 0
