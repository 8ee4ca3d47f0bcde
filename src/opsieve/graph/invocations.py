"""Which functions call which operator through the dispatcher.

Nearly all C++ code enters the dispatcher through `at::_ops::STRUCT::call` or `::redispatch`: these are the dispatch
entries of an operator. The rest looks the operator up by name (`Dispatcher::findSchemaOrThrow("ns::name", "overload")`)
and keeps the handle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from opsieve.graph.symbols import dispatch_entry, finds_schema, operator_text, typed_handle
from opsieve.graph.walk import CodeWalker, Kind


@dataclass(frozen=True, slots=True)
class Invocations:
    """Functions that reach an operator's dispatch."""

    entries: dict[int, str]
    """Dispatch entries: function index -> operator."""

    lookups: tuple[tuple[int, str], ...]
    """(function, operator) for functions that look an operator up by name; an overload that the text does not
    tell stands for all overloads."""

    unnamed: tuple[str, ...]
    """Operator structs whose name in the dispatcher was not found: the analysis refuses a library with any."""


def read_invocations(walker: CodeWalker, registered: Iterable[str]) -> Invocations:
    """Find all dispatch entries and lookups. `registered` are the operators known from registrations."""
    structs = defaultdict(list)
    handles = {}
    for function, name in enumerate(walker.names):
        if not name.startswith(b"_ZN2at4_ops"):
            continue
        if (struct := dispatch_entry(name)) is not None:
            structs[struct].append(function)
        elif (struct := typed_handle(name)) is not None:
            handles[struct] = function
    entries, unnamed = {}, []
    for struct, functions in structs.items():
        looked_up = [handles[struct]] if struct in handles else functions
        operator = next(filter(None, (_handle_name(walker, function) for function in looked_up)), None)
        if operator is None:
            unnamed.append(struct)
        else:
            entries.update(dict.fromkeys(functions, operator))
    known = sorted(set(registered) | set(entries.values()))
    skip = set(handles.values()) | set(entries)
    return Invocations(entries, tuple(_lookups(walker, known, skip)), tuple(sorted(unnamed)))


def _handle_name(walker: CodeWalker, function: int) -> str | None:
    """The two texts that a typed handle is looked up by: `ns::name`, and the overload name or nothing."""
    texts = walker.strings(function)
    base = next((text for text in texts if "::" in text and operator_text(text) == text), None)
    if base is None:
        return None
    overload = next((text for text in texts if text != base and (not text or text.isidentifier())), "")
    return f"{base}.{overload}" if overload else base


def _lookups(walker: CodeWalker, known: list[str], skip: set[int]) -> Iterator[tuple[int, str]]:
    overloads = defaultdict(list)
    for operator in known:
        overloads[operator.partition(".")[0]].append(operator)
    for function in _callers(walker, [f for f, name in enumerate(walker.names) if finds_schema(name)]):
        if function in skip:
            continue
        texts = walker.strings(function)
        for text in texts:
            for operator in overloads.get(text.partition(".")[0], ()):
                overload = operator.partition(".")[2]
                # Any other text of the function may be the overload; only a default overload needs none.
                if text == operator or not overload or overload in texts or len(texts) == 1:
                    yield function, operator


def _callers(walker: CodeWalker, callees: list[int]) -> list[int]:
    """Functions with a direct call to any of `callees`, also through the PLT."""
    import numpy as np

    graph = walker.graph
    starts = graph.functions.starts[callees]
    targets = graph.plt.resolve(graph.references.branch_targets)
    sites = graph.references.branch_sites[np.isin(targets, starts)]
    callers = np.unique(graph.functions.owner(sites))
    return [int(function) for function in callers]


__all__ = ["Invocations", "Kind", "read_invocations"]
