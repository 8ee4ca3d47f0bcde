"""What the live sections of a program are called, for people."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from opsieve.code.elf import SHF_EXECINSTR, STT_FUNC, STT_OBJECT, Int64s
from opsieve.runtimes.source.link.account.program_graph import ProgramGraph

_OURS = "opsieve_"
"""Entries of the table, and the records and functions that they point to."""


class FunctionNames:
    """Demangled names of sections, each looked up once."""

    def __init__(self, graph: ProgramGraph) -> None:
        self._graph = graph
        self._flags = graph.column("flags")
        self._symbols: dict[int, tuple[Int64s, Int64s]] = {}
        self._known: dict[int, str | None] = {}

    def of(self, sections: Iterable[int]) -> tuple[str, ...]:
        """The names of functions and named data, without what is ours and what has no name."""
        found = (self._name(section) for section in sections)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def _name(self, section: int) -> str | None:
        if section not in self._known:
            mangled = self._mangled(section)
            self._known[section] = None if not mangled or mangled.startswith(_OURS) else _demangle(mangled)
        return self._known[section]

    def _mangled(self, section: int) -> str:
        """The first symbol of a section; of code without one, what its section's name says."""
        number = int(np.searchsorted(self._graph.first, section, "right")) - 1
        part, local = self._graph.place(section)
        if number not in self._symbols:
            useful = np.isin(part.symbols["info"] & 15, (STT_FUNC, STT_OBJECT)) & (part.symbol_section > 0)
            places = np.flatnonzero(useful)
            places = places[np.lexsort((part.symbols["value"][places], part.symbol_section[places]))]
            self._symbols[number] = (places, part.symbol_section[places])
        places, sections = self._symbols[number]
        at = int(np.searchsorted(sections, local))
        if at < len(sections) and sections[at] == local:
            return part.symbol_name(int(places[at])).decode("utf-8", "replace")
        is_code = bool(self._flags[section] & SHF_EXECINSTR)
        return part.section_name(local).decode("utf-8", "replace").removeprefix(".text.") if is_code else ""


def _demangle(name: str) -> str:
    import pycxxfilt

    # A suffix such as `.constprop.0` or `.cold` says nothing to a reader, and demanglers do not know all of them.
    return pycxxfilt.demangle(name) or pycxxfilt.demangle(name.partition(".")[0]) or name
