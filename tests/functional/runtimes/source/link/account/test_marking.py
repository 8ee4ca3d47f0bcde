"""What we say is live, against what real linkers say they dropped."""

from __future__ import annotations

from collections import Counter

import pytest

from opsieve.code.elf import ElfFile
from opsieve.runtimes.source.link.account.marking import Live
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph, read_program
from opsieve.runtimes.source.link.account.reading import live_sections
from opsieve.runtimes.source.link.linker import LinkerKind
from tests.functional.runtimes.source.link.account.conftest import Builder, Linked, sites

ROOTS = [(), ("test::conv",), ("test::relu", "test::len")]


def marked(linked: Linked) -> tuple[ProgramGraph, Live]:
    graph, program = read_program(linked.given.objects), ElfFile(linked.program, or_program=True)
    is_lld = linked.linker.kind is LinkerKind.LLD
    return graph, live_sections(graph, program, linked.given, sites(), frames_are_roots=is_lld)


def split(graph: ProgramGraph, live: Live) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    """Dead and live sections, as a linker calls them; without empty ones, which GNU ld does not mention."""
    dead: Counter[tuple[str, str]] = Counter()
    kept: Counter[tuple[str, str]] = Counter()
    sizes = graph.column("size")
    for number in range(len(graph.used)):
        if graph.used[number] and sizes[number]:
            found, local = graph.place(number)
            place = dead if live.parents[number] < 0 else kept
            place[str(found.path), found.section_name(local).decode()] += 1
    return dead, kept


@pytest.mark.parametrize("roots", ROOTS, ids=lambda roots: "+".join(roots) or "none")
@pytest.mark.parametrize("flags", [("-no-pie",), ("-fPIC", "-pie")], ids=["fixed", "pie"])
@pytest.mark.parametrize("linker", ["lld", "bfd"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_dead_is_what_the_linker_dropped(
    builder: Builder, compiler: str, linker: str, flags: tuple[str, ...], roots: tuple[str, ...]
) -> None:
    linked = builder.link(compiler, linker, roots, *flags)
    graph, live = marked(linked)
    dead, kept = split(graph, live)
    assert kept
    assert dead or linker == "bfd"  # which keeps the first entry with some objects, and all that hangs on it
    assert not dead - linked.removed, "the linker kept something that we take for dead"
    objects = {str(path) for path in linked.given.objects}
    empty = Counter({key: count for key, count in linked.removed.items() if key not in dead and key not in kept})
    further = Counter({key: n for key, n in (linked.removed - dead - empty).items() if key[0] in objects})
    if linker == "bfd":
        # It mentions the copies of COMDAT groups that it drops as well: those that are no part of our graph.
        further -= copies(graph)
    assert not further, "the linker dropped something that we take for live"


def copies(graph: ProgramGraph) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    flags = graph.column("flags")
    for number in range(len(graph.used)):
        if not graph.used[number] and flags[number] & 2:
            part, local = graph.place(number)
            found[str(part.path), part.section_name(local).decode()] += 1
    return found


def test_every_live_section_has_a_way_from_a_root(builder: Builder) -> None:
    graph, live = marked(builder.link("g++", "lld", ("test::conv",), "-no-pie"))
    edges = set(zip(graph.sources.tolist(), graph.targets.tolist(), strict=True))
    roots = set(live.roots.tolist())
    for section in live.order.tolist():
        parent = int(live.parents[section])
        assert section in roots if parent == len(graph.used) else (parent, section) in edges
