"""The code graph of a library whose every path is known, against networkx, and against what really runs."""

from __future__ import annotations

import ctypes
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import UnsupportedLibrary
from tests.unit.native import LINKERS, Compiler, Names, analyse, asm

SHAPES = Path(__file__).parent / "sources" / "shapes.cpp"
BIND_HERE = "-Wl,-Bsymbolic-functions"
"""Or the C library's own empty hooks would be called."""

REACHABLE = {
    "entry_direct": {"local_leaf"},
    "entry_plt": {"exported_leaf"},
    "entry_tail": {"local_leaf"},
    "entry_table": {"_ZL13pointer_table", "table_first", "table_second", "table_third"},
    "entry_cursor": {"table_cursor", "writable_table", "late_first", "late_second"},
    "entry_address": {"callback", "chosen_callback"},
    "entry_switch": {"case_one", "case_two", "case_three", "case_four", "case_five"},
    "entry_cold": {"entry_cold.cold", "seldom"},
    "entry_thread": {"thread_leaf"},
    "entry_catch": {"entry_catch.cold", "handler_leaf", "may_throw", "may_throw.cold"},
    "entry_virtual": {"call_area", "_ZTV6Square", "_ZN6Square4areaEi", "exported_leaf"},
}


@pytest.fixture(scope="module", params=LINKERS)
def names(request: pytest.FixtureRequest, compiler: Compiler) -> Names:
    elf = ElfFile(compiler.library(SHAPES, flags=["-O2"], linker=request.param))
    return Names(elf, analyse(elf))


@pytest.mark.parametrize("entry", REACHABLE)
def test_each_entry_reaches_what_it_can_call_and_nothing_else(names: Names, entry: str) -> None:
    found = names.reachable(entry) - {entry}
    if entry == "entry_virtual":
        # Destructors and type information come with the class.
        found = {name for name in found if not name.startswith(("_ZTI", "_ZTS", "_ZN6SquareD"))}
    assert found == REACHABLE[entry]


def test_no_entry_reaches_what_nobody_calls(names: Names) -> None:
    found = names.reachable(*REACHABLE)
    assert not found & {"never_called", "never_exported", "_ZN6Circle4areaEi"}


def test_reachability_is_that_of_networkx_from_every_node(names: Names) -> None:
    graph = names.graph
    sources = np.repeat(np.arange(graph.node_count), np.diff(graph.first_edge))
    oracle = nx.DiGraph(list(zip(sources.tolist(), graph.targets.tolist(), strict=True)))
    oracle.add_nodes_from(range(graph.node_count))
    assert oracle.number_of_edges() > 50
    for node in range(graph.node_count):
        found = set(np.flatnonzero(graph.reachable(np.array([node]))).tolist())
        assert found == nx.descendants(oracle, node) | {node}


@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3", "-Os"])
def test_all_that_runs_is_reachable(compiler: Compiler, level: str) -> None:
    """Every function of a build reports when it is entered; none may lie outside what its entry reaches."""
    hooks = """
        extern "C" {
        __attribute__((visibility("default"))) void* entered[4096];
        __attribute__((visibility("default"))) int entered_count;
        __attribute__((no_instrument_function)) void __cyg_profile_func_enter(void* function, void*) {
          if (entered_count < 4096) { entered[entered_count++] = function; }
        }
        __attribute__((no_instrument_function)) void __cyg_profile_func_exit(void*, void*) {}
        }
    """
    elf = ElfFile(compiler.library(SHAPES, hooks, flags=[level, "-finstrument-functions", BIND_HERE]))
    graph = analyse(elf)
    names = Names(elf, graph).all()
    loaded = ctypes.CDLL(str(elf.path))
    count = ctypes.c_int.in_dll(loaded, "entered_count")
    addresses = (ctypes.c_void_p * 4096).in_dll(loaded, "entered")
    first = names.index("entry_direct")
    base = ctypes.cast(loaded.entry_direct, ctypes.c_void_p).value - int(graph.functions.starts[first])
    seen = set()
    for entry in REACHABLE:
        count.value = 0
        for argument in (*range(16), 999, 12345):
            getattr(loaded, entry)(argument)
        entered = np.array([address - base for address in addresses[: count.value]])
        allowed = graph.reachable(np.array([names.index(entry)]))
        assert allowed[graph.nodes_at(entered)].all()
        seen.update(names[node] for node in graph.nodes_at(entered).tolist())
    assert {"local_leaf", "table_third", "late_second", "case_five", "thread_leaf", "handler_leaf"} <= seen


def test_a_part_that_only_a_table_leads_to_hangs_on_all_of_its_name(compiler: Compiler) -> None:
    """Two local functions of one name, each with a cold part that no jump leads to; and one named by an alias."""

    def leaf(name: str) -> str:
        return f".type {name}, @function; {name}: ret; .size {name}, 1; .fill 16, 1, 0x90;"

    def cold(name: str, callee: str) -> str:
        return (
            f".type {name}.cold, @function; {name}.cold: call {callee}; ret; .size {name}.cold, 6; .fill 16, 1, 0x90;"
        )

    first = leaf("one") + leaf("same") + cold("same", "one")
    second = leaf("two") + leaf("same") + cold("same", "two")
    alias = leaf("three") + ".globl real, other; .type other, @function; other:" + leaf("real") + cold("other", "three")
    sources = [asm(f".text; {text}") for text in (first, second, alias)]
    elf = ElfFile(compiler.library(*sources, flags=["-nostdlib"]))
    graph = analyse(elf)
    names = Names(elf, graph).all()
    both = [number for number, name in enumerate(names) if name == "same"]
    assert len(both) == 2
    for number in both:
        flags = graph.reachable(np.array([number]))
        assert {name for name, flag in zip(names, flags.tolist(), strict=True) if flag} == {
            "same",
            "same.cold",
            "one",
            "two",
        }
    (aliased,) = (number for number, name in enumerate(names) if name in ("real", "other"))
    assert graph.reachable(np.array([aliased]))[names.index("three")]


def test_code_that_runs_on_reaches_what_follows(compiler: Compiler) -> None:
    text = """
        .text
        .globl runs_on, following, ends
        .type runs_on, @function
        .type following, @function
        .type ends, @function
        runs_on: nop
                 mov $1, %eax
        .size runs_on, 6
        following: ret
        .size following, 1
        ends: ret
        .size ends, 1
    """
    elf = ElfFile(compiler.library(asm(text), flags=["-nostdlib"]))
    names = Names(elf, analyse(elf))
    assert names.reachable("runs_on") == {"runs_on", "following"}
    assert names.reachable("following") == {"following"}


def test_a_library_without_build_id_is_refused(compiler: Compiler) -> None:
    elf = ElfFile(compiler.library("int f() { return 1; }", flags=["-Wl,--build-id=none"]))
    with pytest.raises(UnsupportedLibrary, match="no build id"):
        analyse(elf)


def test_nodes_are_found_by_address(names: Names) -> None:
    graph = names.graph
    function, table = names.node("entry_direct"), names.node("_ZL13pointer_table")
    start = int(graph.functions.starts[function])
    place = int(graph.data.starts[table - len(graph.functions)])
    found = graph.nodes_at(np.array([start, start + 1, start - 1, place, place + 8, 2, 2**40]))
    assert found.tolist() == [function, function, function - 1, table, table, -1, -1]
