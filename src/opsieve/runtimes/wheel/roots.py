"""What must stay in a library whatever is selected: all that somebody outside can reach without the dispatcher."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from opsieve.code.elf import DYNAMIC, PT_DYNAMIC, SHN_UNDEF, ElfFile, Int64s
from opsieve.code.graph import CodeGraph
from opsieve.code.links import resolvers
from opsieve.errors import InvalidLibrary
from opsieve.installed import TorchInstall, run_child

_CHILD = Path(__file__).with_name("_loaded_child.py")
_ENTRY_TAGS = (12, 13)
"""DT_INIT and DT_FINI: usually `.init` and `.fini`, but the linker's options -init and -fini name any function."""

_POINTER_SECTIONS = (".preinit_array", ".init_array", ".fini_array")
_SLOT = 8


def loaded_libraries(install: TorchInstall) -> tuple[Path, ...]:
    """The shared libraries of a process that has imported torch, those of the system among them."""
    return tuple(Path(path) for path in run_child(install.python, _CHILD, {}, timeout=300))


def neighbours(install: TorchInstall, loaded: Iterable[Path]) -> tuple[Path, ...]:
    """Of the libraries of a process, PyTorch's own and those they need: only these look symbols up in PyTorch's.

    Others, such as the ones that NumPy brings, may define functions of the same names (`sgemm_`), but PyTorch's
    libraries are not in their search scope (dlopen(3), RTLD_LOCAL).
    """
    by_name = {path.name: path for path in loaded}
    aliases = {name.partition(".so")[0]: name for name in by_name}
    waiting = [name for name, path in by_name.items() if path.is_relative_to(install.package)]
    found: dict[str, Path] = {}
    while waiting:
        name = waiting.pop()
        # The maps of a process tell the real file name, libstdc++.so.6.0.30, and DT_NEEDED the soname.
        name = name if name in by_name else aliases.get(name.partition(".so")[0], "")
        if name and name not in found:
            found[name] = by_name[name]
            waiting.extend(ElfFile(by_name[name]).needed)
    return tuple(sorted(found.values()))


def loader_roots(elf: ElfFile, graph: CodeGraph) -> Int64s:
    """Nodes that the dynamic loader runs or reads: constructors, destructors, resolvers of indirect functions."""
    dynamic = elf.records(".dynamic", DYNAMIC)
    entries = dynamic["value"][np.isin(dynamic["tag"], _ENTRY_TAGS)].astype(np.int64)
    sections = [found for name in _POINTER_SECTIONS if (found := elf.find_section(name))]
    slots = [np.arange(s.address, s.address + len(elf.contents(s)), _SLOT) for s in sections]
    return _present(graph.nodes_at(np.concatenate([entries, resolvers(elf), *slots])))


def export_roots(elf: ElfFile, graph: CodeGraph, consumers: Iterable[Path]) -> Int64s:
    """Nodes of exported symbols that another library names, whether it imports or defines the symbol.

    A symbol that both define counts too: with the loader's search order the other library's calls may end up here.
    """
    names: set[bytes] = set()
    for consumer in consumers:
        names.update(_dynamic_names(consumer))
    symbols = elf.dynamic_symbols
    own = elf.names_of(symbols["name"].astype(np.int64), ".dynstr")
    wanted = np.array([name in names for name in own], bool) & (symbols["shndx"] != SHN_UNDEF)
    return _present(graph.nodes_at(symbols["value"][wanted].astype(np.int64)))


def _dynamic_names(consumer: Path) -> list[bytes]:
    elf = ElfFile(consumer, or_program=True)
    if elf.find_section(".dynsym") is None and (elf.segments["type"] == PT_DYNAMIC).any():
        raise InvalidLibrary(
            "the file has lost its section headers, so what it calls cannot be told",
            where=consumer,
            remedy="name the file as the linker made it",
        )
    return elf.names_of(elf.dynamic_symbols["name"].astype(np.int64), ".dynstr")


def _present(nodes: Int64s) -> Int64s:
    found: Int64s = nodes[nodes >= 0]
    return found
