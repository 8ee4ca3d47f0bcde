"""Reading a tree's text into an index: first what headers say (macros, classes, type names), then each source file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.index.conditions import Conditions, Defines
from opsieve.runtimes.source.index.includes import Includers
from opsieve.runtimes.source.index.macros import MAX_ALTERNATIVES, Macro, MacroTable, read_macro
from opsieve.runtimes.source.index.records import Definition, IndexData
from opsieve.runtimes.source.index.scan import Found, Scanner
from opsieve.runtimes.source.index.text import Unit, read_unit
from opsieve.runtimes.source.index.types import find_aliases

FORMAT = 4
"""Changes when what is stored, or how text is read, changes."""

MAX_FILE = 32 << 20
"""Bytes of one source file; the largest that PyTorch generates has 4 million."""

MAX_DEFINITIONS = 2_000_000

_HEADERS = frozenset({".h", ".hpp", ".hh", ".hxx", ".inc", ".inl"})


def build(files: Iterable[tuple[str, Path]], defines: Defines | None) -> IndexData:
    """Index files given as (name to answer with, where it is). See SymbolIndex.build."""
    units = {path: read_unit(_text(file)) for path, file in files}
    headers = {path: unit for path, unit in units.items() if _is_header(path)}
    shared = _shared_macros(headers.values(), defines or {})
    conditions = Conditions(defines, shared)
    usable = _usable_macros(shared, defines or {})
    paths = tuple(sorted(path for path in units if path not in headers))
    classes: dict[str, str] = {}
    definitions: dict[str, list[Definition]] = {}
    numbers = {path: number for number, path in enumerate(paths)}
    includers = Includers(units)
    for path in sorted(units):
        is_header = path in headers
        scanner = Scanner(MacroTable(usable), conditions, c=path.endswith(".c"), header=is_header)
        scanner.scan(units[path])
        _add_classes(classes, scanner.classes)
        makers = includers.sources(path, headers) if is_header and scanner.found else (path,)
        for maker in makers if scanner.found else ():
            _add_definitions(definitions, scanner.found, numbers[maker])
    return IndexData(
        format=FORMAT,
        files=paths,
        definitions={key: tuple(found) for key, found in definitions.items()},
        classes=classes,
        aliases=_aliases(headers.values()),
    )


def _text(file: Path) -> str:
    try:
        size = file.stat().st_size
        if size > MAX_FILE:
            raise InvalidFile("the source file is too large", where=file, expected=f"at most {MAX_FILE} bytes")
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InvalidFile(f"cannot read the source file: {error}", where=file) from error


def _is_header(path: str) -> bool:
    return Path(path).suffix in _HEADERS


def _shared_macros(headers: Iterable[Unit], defines: Defines) -> dict[str, tuple[Macro, ...]]:
    """All macros of the headers, each with all its definitions, and those of the command line."""
    found: dict[str, list[Macro]] = {}
    for unit in headers:
        for event in unit.events:
            macro = read_macro(event.text) if event.kind == "define" else None
            if macro is not None:
                known = found.setdefault(macro.name, [])
                if macro not in known and len(known) < MAX_ALTERNATIVES:
                    known.append(macro)
    for name, value in defines.items():
        values = (value,) if isinstance(value, str) else value
        found[name] = [Macro(name, None, one) for one in values[:MAX_ALTERNATIVES]]
    return {name: tuple(known) for name, known in found.items()}


def _usable_macros(shared: Mapping[str, tuple[Macro, ...]], defines: Defines) -> dict[str, tuple[Macro, ...]]:
    """The macros that are looked for in declarations of every file.

    Not those in lower case: many a function has the name of some header's macro. Of the ones without parentheses, which
    are attributes mostly, only those of the command line.
    """
    return {
        name: macros
        for name, macros in shared.items()
        if name in defines or (macros[0].parameters is not None and name != name.lower())
    }


def _add_classes(classes: dict[str, str], found: Mapping[str, str]) -> None:
    for name, function in found.items():
        if function or name not in classes:
            classes[name] = function


def _add_definitions(definitions: dict[str, list[Definition]], found: Iterable[Found], number: int) -> None:
    for one in dict.fromkeys(found):
        definitions.setdefault(one.key, []).append(
            Definition(
                number,
                one.kind,
                _short(one.arguments),
                one.parameters and _short(one.parameters),
                one.macro,
                one.certainty,
            )
        )
    if len(definitions) > MAX_DEFINITIONS:
        raise InvalidFile("the source tree defines too many names", expected=f"at most {MAX_DEFINITIONS}")


def _short(text: str) -> str:
    return " ".join(text.split())[:2_000]


def _aliases(units: Iterable[Unit]) -> dict[str, tuple[str, ...]]:
    meanings: dict[str, list[str]] = {}
    for unit in units:
        for name, meaning in find_aliases(unit.code):
            known = meanings.setdefault(name, [])
            if meaning not in known and len(known) < 6:
                known.append(meaning)
    return {name: tuple(known) for name, known in meanings.items()}
