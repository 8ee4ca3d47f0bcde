"""Lists of operators that only TorchScript's interpreters have: each element can become an entry of the table.

Three shapes are known: a vector of `OperatorGeneratorArgs`, the argument of a `RegisterOperators` object, and the lite
interpreter's array of `prim_op_fn_register`. An element whose name is no literal stays in its list.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.cpp_text import CppText, any_literal
from opsieve.runtimes.source.association.names import schema_operator
from opsieve.runtimes.source.association.sites import SiteKind

Preprocess = Callable[[str], str]
"""C++ text of a whole file -> what the preprocessor makes of it, for the file's own flags and include folders."""

_VECTOR = re.compile(r"std::vector<\s*OperatorGeneratorArgs\s*>\s+(?P<name>\w+)\s*(?P<open>\{)")
_REGISTERED = re.compile(r"(?:torch::jit::)?\bRegisterOperators\s+(?:const\s+)?\w+\s*\(\s*(?P<open>\{)")
_ARRAY = re.compile(
    r"(?:\[\[maybe_unused\]\]\s*)?static\s+const\s+(?:\w+\s+)?std::array<\s*mobile::prim_op_fn_register\s*,\s*\d+\s*>\s*\w+\s*=\s*(?P<open>\{)"
)
_REGISTRAR = re.compile(r"\bRegisterOperators\s+\w+\s*(?P<open>\()")
_ELEMENT = re.compile(r"[\w:]+\s*\(")
_MARKERS = "\nopsieve_list_begin_{0}\n{1}\nopsieve_list_end_{0}\n"


@dataclass(frozen=True, slots=True)
class Element:
    """One operator of a list: the expression that makes it."""

    operator: OperatorName
    text: str


@dataclass(frozen=True, slots=True)
class OperatorList:
    """A list in a source file."""

    kind: SiteKind
    start: int
    end: int
    """What the list's remaining elements replace: text[start:end]."""

    remaining: str
    """The text to put there."""

    insert_at: int
    """Where entries can stand: at namespace scope, behind everything that the elements refer to."""

    call: str
    """The statement that registers one element, with `{}` for its text."""

    elements: tuple[Element, ...]


def find_lists(source: CppText, preprocess: Preprocess) -> list[OperatorList]:
    """The lists of a file. `preprocess` is called at most once, and only if a list holds macros or directives."""
    found = [
        *((SiteKind.INTERPRETER, match) for match in _VECTOR.finditer(source.plain)),
        *((SiteKind.INTERPRETER, match) for match in _REGISTERED.finditer(source.plain)),
        *((SiteKind.PROMOTED, match) for match in _ARRAY.finditer(source.plain)),
    ]
    spans = [(match.start("open") + 1, source.closing(match.start("open"))) for _, match in found]
    bodies = _expanded(source, spans, preprocess)
    lists = [
        _list(source, kind, match, span, body) for (kind, match), span, body in zip(found, spans, bodies, strict=True)
    ]
    return [item for item in lists if item.elements]


def _expanded(source: CppText, spans: list[tuple[int, int]], preprocess: Preprocess) -> list[str]:
    """The lists' bodies with macros expanded, where they have any."""
    bodies = [source.text[start:end] for start, end in spans]
    if all(_is_plain(body) for body in bodies):
        return bodies
    marked, position = "", 0
    for number, (start, end) in enumerate(spans):
        marked += source.text[position:start] + _MARKERS.format(number, source.text[start:end])
        position = end
    expanded = preprocess(marked + source.text[position:])
    return [_between_markers(expanded, number, body) for number, body in enumerate(bodies)]


def _between_markers(expanded: str, number: int, body: str) -> str:
    begin, end = (expanded.find(f"opsieve_list_{which}_{number}\n") for which in ("begin", "end"))
    if begin < 0 or end < begin:
        return body  # the list itself is left out for these flags
    inner = expanded[begin:end].partition("\n")[2]
    return re.sub(r"^#.*\n", "", inner, flags=re.MULTILINE)


def _is_plain(body: str) -> bool:
    inner = CppText(body)
    if re.search(r"^[ \t]*#", inner.plain, re.MULTILINE):
        return False
    return all(
        re.match(
            r"\s*(?:[\w:]*(?:Operator|OperatorGenerator|OperatorGeneratorArgs|prim_op_fn_register)\s*\(|$)",
            inner.plain[a:b],
        )
        for a, b in inner.split(0, len(body), ",")
    )


def _list(source: CppText, kind: SiteKind, match: re.Match[str], span: tuple[int, int], body: str) -> OperatorList:
    elements: list[Element] = []
    others: list[str] = []
    inner = CppText(body, source.path)
    for start, end in inner.split(0, len(body), ","):
        code = inner.plain[start:end]
        if not code.strip():
            continue
        text = body[start + len(code) - len(code.lstrip()) : end].strip()  # without comments in front
        operator = _operator(text)
        if operator is None:
            others.append(text)
        else:
            elements.append(Element(operator, text))
    if kind is SiteKind.PROMOTED:
        # The array does nothing but run the constructors of its elements.
        end = source.plain.index(";", span[1]) + 1
        return OperatorList(kind, match.start(), end, "", end, "static const auto registered = {};", tuple(elements))
    if "name" not in match.groupdict():
        # Empty operators, which RegisterOperators skips: a list of none or one could be meant as a copy of another.
        others += ["{}", "{}"]
    call, insert_at = _registering(source, match, span)
    return OperatorList(kind, *span, ", ".join(others), insert_at, call, tuple(elements))


def _registering(source: CppText, match: re.Match[str], span: tuple[int, int]) -> tuple[str, int]:
    """How one element is registered, and where that can be written."""
    name = match.groupdict().get("name")
    if name is None:
        end = source.plain.index(";", span[1]) + 1
        return "static const ::torch::jit::RegisterOperators registered({{{}, {{}}}});", end
    insert_at = source.plain.index(";", span[1]) + 1
    for user in _REGISTRAR.finditer(source.plain, span[1]):
        close = source.closing(user.start("open"))
        if re.search(rf"\bcreateOperators\s*\(\s*{name}\s*\)", source.plain[user.start() : close]):
            insert_at = source.plain.index(";", close) + 1
    call = "static const ::torch::jit::RegisterOperators registered(createOperators({{{}}}));"
    return call, insert_at


def _operator(element: str) -> OperatorName | None:
    """The operator that an element makes, if its first argument is a literal schema or name."""
    inner = CppText(element)
    head = _ELEMENT.match(element)
    if head is None:
        return None
    start, end = inner.split(head.end(), inner.closing(head.end() - 1), ",")[0]
    literal = any_literal(element[start:end])
    return None if literal is None else schema_operator(literal)
