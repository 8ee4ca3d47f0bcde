"""The fast way to a runtime: everything is compiled, so what is needed is looked up, and one link confirms it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields
from pathlib import Path

from opsieve.files import replacing_file
from opsieve.runtimes.source.link.listed import hidden_table
from opsieve.runtimes.source.link.stand_ins import StandIn
from opsieve.runtimes.source.objects import CompileFailure, cause
from opsieve.runtimes.source.prepared import ENTRY, PreparedObjects
from opsieve.runtimes.source.seeds import REGISTRAR
from opsieve.runtimes.source.selective_link import Linked, SelectiveLink


def link_prepared(
    work: SelectiveLink, prepared: PreparedObjects, seeds: Iterable[str], roots: tuple[str, ...], output: Path
) -> Linked:
    """What `work.run` would give, from the objects of a prepared archive; `work` itself does not change.

    Mostly one link: the objects are forecast by the archive's references. What the forecast misses is linked in further
    rounds, and sources that the archive lacks (an application's own) are compiled. Raises what SelectiveLink.run does.
    """
    seeds = tuple(dict.fromkeys(seeds))
    references = prepared.references
    entry = (ENTRY,) if references.definer(ENTRY) in seeds else ()
    forecast = references.forecast(seeds, (*roots, *entry), work.left_out)
    settings = {field.name: getattr(work, field.name) for field in fields(work) if not field.name.startswith("_")}
    link = _PreparedLink(**settings).using(prepared, forecast.nowhere)
    return link.run(dict.fromkeys((*seeds, *forecast.sources)), roots, output)


class _PreparedLink(SelectiveLink):
    """A selective link that looks objects and definitions up before it compiles and guesses."""

    _prepared: PreparedObjects

    def using(self, prepared: PreparedObjects, nowhere: Collection[str]) -> _PreparedLink:
        """Take objects from this archive; what of `nowhere` a source defines that is left out gets a stand-in."""
        self._prepared = prepared
        left_out = prepared.record.left_out
        self._refused.update((name, CompileFailure(name, (message,))) for name, message in left_out.items())
        for symbol in nowhere:
            source = prepared.record.stand_ins.get(symbol)
            if source is not None:
                self._stand_ins[symbol] = StandIn(symbol, source, cause(left_out.get(source, "")))
        return self

    def _source_of(self, symbol: str) -> str | None:
        name = self._prepared.references.definer(symbol)
        if name is not None and name not in self._objects:
            return name
        return super()._source_of(symbol)

    def _compile(self, wanted: Mapping[str, tuple[str, ...]], *, required: bool) -> None:
        there = {name: path for name, path in self._prepared.objects.items() if name in wanted}
        if self._listed is not None:
            there.pop(REGISTRAR, None)  # it reads the list only when it is compiled for that
            there = {name: self._without_table(name, path) for name, path in there.items()}
        self._objects.update(there)
        rest = {name: symbols for name, symbols in wanted.items() if name not in there}
        if rest:
            super()._compile(rest, required=required)

    def _without_table(self, name: str, path: Path) -> Path:
        """The object for a linker that would keep the whole table; written once for each archive."""
        target = self.store.root / "listed" / self._prepared.folder.name / f"{name.replace('/', '__')}.o"
        if not self.store.use(target):
            with replacing_file(target, force=True) as temporary:
                temporary.write_bytes(hidden_table(path.read_bytes()))
            self.store.use(target)
        return target
