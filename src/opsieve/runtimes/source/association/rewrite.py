"""Rewriting a source file so that its registrations become entries of the table.

The result has the same line numbers (a `#line` in front names the original), the same namespaces and the same
preprocessor conditions; only the blocks, the lists and the lookups by name change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.blocks import Block, Statement, find_blocks
from opsieve.runtimes.source.association.class_set_up import SetUps
from opsieve.runtimes.source.association.cpp_text import CppText
from opsieve.runtimes.source.association.lists import OperatorList, Preprocess, find_lists
from opsieve.runtimes.source.association.named_dispatch import Use, find_handles, find_lookups
from opsieve.runtimes.source.association.names import interpreter_symbol, kernel_symbol, operator_symbol
from opsieve.runtimes.source.association.sites import Site, SiteKind

_MARKS = (
    "TORCH_LIBRARY",
    "RegisterOperators",
    "prim_op_fn_register",
    "_typed_handle()",
    "findSchema",
    "findOp(",
    "ForLiteral(",
)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b.*$", re.MULTILINE)


def mentions_operators(text: str) -> bool:
    """Whether a file can hold anything to rewrite; cheap, and true for few files."""
    return any(mark in text for mark in _MARKS)


@dataclass(frozen=True)
class Scanned:
    """What a source file registers and dispatches by name."""

    source: CppText
    blocks: tuple[Block, ...]
    lists: tuple[OperatorList, ...]
    handles: tuple[Use, ...]
    lookups: tuple[Use, ...]
    sites: tuple[Site, ...]
    """In the order of the text: blocks first, then lists."""

    @property
    def untouched(self) -> tuple[str, ...]:
        """The blocks that stay as they are, each with the reason."""
        return tuple(
            f"{self.source.path}:{self.source.line(block.start)}: {block.reason}"
            for block in self.blocks
            if block.reason
        )


def scan(path: str, text: str, preprocess: Preprocess) -> Scanned:
    """Find what a file registers. `path` is how the file is called in sites and messages."""
    source = CppText(text, path)
    blocks = tuple(find_blocks(source))
    lists = tuple(find_lists(source, preprocess))
    sites = [*_block_sites(source, blocks), *_list_sites(source, lists)]
    handles = tuple(find_handles(source))
    return Scanned(source, blocks, lists, handles, () if handles else tuple(find_lookups(source)), tuple(sites))


def _block_sites(source: CppText, blocks: Iterable[Block]) -> Iterable[Site]:
    for block in blocks:
        for statement in block.statements:
            kind = SiteKind.SCHEMA if statement.is_schema else SiteKind.KERNEL
            operator = statement.operator
            symbol = operator_symbol(operator) if statement.is_schema else kernel_symbol(operator, block.key)
            yield Site(kind, operator, symbol, source.path, source.line(statement.start), block.key)


def _list_sites(source: CppText, lists: Iterable[OperatorList]) -> Iterable[Site]:
    for found in lists:
        line = source.line(found.start)
        for element in found.elements:
            symbol = interpreter_symbol(element.operator, found.kind.value)
            yield Site(found.kind, element.operator, symbol, source.path, line)


def distinct_symbols(scans: Iterable[Scanned]) -> list[Scanned]:
    """The same scans, with a number behind the symbols that several sites would share."""
    seen: Counter[str] = Counter()
    result: list[Scanned] = []
    for scanned in scans:
        sites = []
        for site in scanned.sites:
            seen[site.symbol] += 1
            number = seen[site.symbol]
            symbol = site.symbol if number == 1 else f"{site.symbol}.{number}"
            sites.append(Site(site.kind, site.operator, symbol, site.file, site.line, site.key))
        result.append(
            Scanned(scanned.source, scanned.blocks, scanned.lists, scanned.handles, scanned.lookups, tuple(sites))
        )
    return result


@dataclass(frozen=True, slots=True)
class _Edit:
    start: int
    end: int
    text: str


class Rewriter:
    """Rewrites scanned files; `kernels` gives the kernels' symbols of each operator, over all files of the tree, and
    `known` all operators that are registered there: only to these can anything refer. `set_ups` tells which calls
    register the classes that a schema names."""

    def __init__(
        self, kernels: Mapping[OperatorName, tuple[str, ...]], known: frozenset[OperatorName], set_ups: SetUps
    ) -> None:
        self._kernels = kernels
        self._known = known
        self._set_ups = set_ups

    def rewrite(self, scanned: Scanned) -> str:
        """The new text. It calls itself by the original's name, for messages of the compiler."""
        source = scanned.source
        uses = (*scanned.handles, *scanned.lookups)
        edits = [_dispatch_edit(source, use) for use in uses if use.operator in self._known]
        sites = iter(enumerate(scanned.sites, start=1))
        for block in scanned.blocks:
            edits += self._block_edits(source, block, sites)
        for found in scanned.lists:
            edits += self._list_edits(source, found, sites)
        if edits:
            edits.append(_include_edit(source, min(edit.start for edit in edits), bool(scanned.sites)))
        return f'#line 1 "{source.path}"\n' + _apply(source.text, edits)

    def _block_edits(self, source: CppText, block: Block, sites: Iterable[tuple[int, Site]]) -> list[_Edit]:
        if block.reason:
            return []
        edits = [
            _keeping_lines(source, block.start, block.body + 1, ""),
            _Edit(block.end - 1, block.end, ""),
            *(_keeping_lines(source, start, end, "") for start, end in block.dropped),
        ]
        for statement, (number, site) in zip(block.statements, sites, strict=False):
            edits.append(
                _keeping_lines(
                    source, statement.start, statement.end, self._entry(source, block, statement, number, site)
                )
            )
        return edits

    def _entry(self, source: CppText, block: Block, statement: Statement, number: int, site: Site) -> str:
        space = f'"{block.namespace}"'
        needs = self._needs(statement.operator) if statement.is_schema else ""
        if statement.function is not None:
            arguments = f'{number}, "{site.symbol}", {space}, {block.key}, "{statement.literal}"'
            return f"OPSIEVE_KERNEL({arguments}, {statement.function})"
        calls = self._set_ups.needed(statement.literal, statement.set_up)
        if statement.tags == "{}" and not calls:
            return f'OPSIEVE_SCHEMA({number}, "{site.symbol}", {space}, "{statement.literal}", {needs or _NOTHING})'
        if statement.tags is not None and not calls:
            arguments = f'{number}, "{site.symbol}", {space}, "{statement.literal}", {needs or _NOTHING}'
            return f"OPSIEVE_TAGGED_SCHEMA({arguments}, {statement.tags})"
        code = " ".join((*(f"{call};" for call in calls), _definition(source, statement)))
        key = f"c10::DispatchKey::{block.key}" if block.key else "::opsieve::kSchema"
        return f'OPSIEVE_STATEMENT({number}, "{site.symbol}", {space}, {key}, {needs or _NOTHING}, {code})'

    def _needs(self, operator: OperatorName) -> str:
        return " ".join(f'OPSIEVE_RELOCATION("{symbol}")' for symbol in self._kernels.get(operator, ()))

    def _list_edits(self, source: CppText, found: OperatorList, sites: Iterable[tuple[int, Site]]) -> list[_Edit]:
        entries = [
            f'OPSIEVE_CALL({number}, "{site.symbol}", {found.call.format(element.text)});'
            for element, (number, site) in zip(found.elements, sites, strict=False)
        ]
        line = source.line(found.insert_at)
        text = "\n" + "\n".join(entries) + f"\n#line {line}\n"
        return [
            _keeping_lines(source, found.start, found.end, found.remaining),
            _Edit(found.insert_at, found.insert_at, text),
        ]


_NOTHING = '""'


def _definition(source: CppText, statement: Statement) -> str:
    """The statement itself; a schema's tags may have gone by a name that is known in its block only."""
    if statement.tags is None:
        return source.text[statement.start : statement.end]
    return f'm.def("{statement.literal}"{"" if statement.tags == "{}" else f", {statement.tags}"})'


def _dispatch_edit(source: CppText, use: Use) -> _Edit:
    symbol = operator_symbol(use.operator)
    if use.literal_end is None:
        return _Edit(use.position, use.position, f' OPSIEVE_NEEDS("{symbol}");')
    literal = source.text[use.position : use.literal_end]
    return _Edit(use.position, use.literal_end, f'OPSIEVE_NAMED("{symbol}", {literal})')


def _keeping_lines(source: CppText, start: int, end: int, text: str) -> _Edit:
    """Replace [start, end), with as many line ends as were there, so that line numbers stay."""
    missing = source.text.count("\n", start, end) - text.count("\n")
    return _Edit(start, end, text + "\n" * max(0, missing))


def _include_edit(source: CppText, before: int, registers: bool) -> _Edit:
    """Our header, behind the last include in front of the first edit: what it includes may depend on earlier macros."""
    header = "registration.h" if registers else "dispatch.h"
    position = 0
    for match in _INCLUDE.finditer(source.text, 0, before):
        if source.plain[match.start()].strip() or source.plain[match.start() : match.end()].strip().startswith("#"):
            position = match.end()
    line = source.line(position) + 1
    extra = "#include <opsieve/dispatch.h>\n" if registers else ""
    return _Edit(
        position,
        position,
        f"\n#include <opsieve/{header}>\n{extra}#line {line - (position == 0)}" + "\n" * (position == 0),
    )


def _apply(text: str, edits: Iterable[_Edit]) -> str:
    parts: list[str] = []
    position = 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        parts += [text[position : edit.start], edit.text]
        position = edit.end
    return "".join([*parts, text[position:]])
