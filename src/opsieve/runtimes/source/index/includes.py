"""Which sources see a header: definitions in a header are made by the files that include it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from opsieve.runtimes.source.index.text import Unit

_MAX_STEPS = 6
"""Headers between a header and a source."""


class Includers:
    """Follows `#include` lines backwards. As no search path is known, the end of a path tells what is included."""

    def __init__(self, units: Mapping[str, Unit]) -> None:
        self._includers: dict[str, list[str]] = {}
        for path, unit in units.items():
            for name in unit.includes:
                self._includers.setdefault(name.rpartition("/")[2], []).append(path)
        self._units = units

    def sources(self, header: str, headers: Iterable[str]) -> tuple[str, ...]:
        """The sources that include `header` over the fewest other headers, sorted."""
        known = frozenset(headers)
        reached, frontier = {header}, [header]
        for _ in range(_MAX_STEPS):
            direct = {path for one in frontier for path in self._direct(one)} - reached
            sources = direct - known
            if sources:
                return tuple(sorted(sources))
            reached |= direct
            frontier = sorted(direct)
        return ()

    def _direct(self, header: str) -> list[str]:
        return [
            path
            for path in self._includers.get(header.rpartition("/")[2], ())
            if any(header == name or header.endswith("/" + name) for name in self._units[path].includes)
        ]
