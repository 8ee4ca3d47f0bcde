"""`TORCH_LIBRARY*` blocks: their statements, each of which can become an entry of the table.

What is understood: `m.impl(name, function)`, `m.def(schema, ...)` with a literal name, tag lists, and calls that set
something up. A block with anything else in it stays as it is: it registers everything that it names, always, which is
correct and larger. `Block.reason` then says why.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.cpp_text import CppText, leading_literal
from opsieve.runtimes.source.association.names import schema_operator

_BLOCK = re.compile(r"\b(TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?)\s*\(")
_CALL = re.compile(r"m\s*\.\s*(impl|def)\s*\(")
_TAGS = re.compile(r"const\s+std::vector<at::Tag>\s+(\w+)\s*=\s*(\{[^{}]*\})")
_SET_UP = re.compile(r"[A-Za-z_][\w:]*(?:<[\w, ]*>)?\s*\(\s*\)")
_PYTHON_MODULE = re.compile(r"m\s*\.\s*(?:set_python_module|impl_abstract_pystub)\s*\(")
_SELECTIVE = re.compile(r"\s*TORCH_SELECTIVE_(?:NAME|SCHEMA)\s*\(")
_FUNCTION_POINTER = re.compile(
    r"(?:TORCH_FN\s*\(\s*(?P<plain>[\w:]+)\s*\)|(?P<cast>static_cast\s*<.*>\s*\(\s*&?[\w:]+\s*\))|(?P<bare>[\w:]+))",
    re.DOTALL,
)
_DIRECTIVE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Statement:
    """One registration of a block: `text[start:end]`, semicolon excluded."""

    start: int
    end: int
    is_schema: bool
    operator: OperatorName
    literal: str
    """The operator's name or its schema, as written."""

    function: str | None
    """For a kernel: an expression that is a function pointer known at compile time; None if it is something else."""

    tags: str | None
    """For a schema without a function: the tag list, braces included; None if it is something else."""

    set_up: tuple[str, ...] = ()
    """Calls that must come before it."""


@dataclass(frozen=True, slots=True)
class Block:
    """One `TORCH_LIBRARY*` block. `key` is empty where schemas are registered."""

    start: int
    body: int
    end: int
    """The block is text[start:end]; its body starts behind the bracket at `body`, and ends before `end - 1`."""

    namespace: str
    key: str
    statements: tuple[Statement, ...]
    dropped: tuple[tuple[int, int], ...] = ()
    """Parts of the body that nothing remains of."""

    reason: str = ""
    """Why the block stays as it is; empty when it is taken apart."""


class NotUnderstood(Exception):
    """A statement that cannot be an entry of its own."""


def find_blocks(source: CppText) -> list[Block]:
    """The blocks of a file, in order. Macro definitions and comments that mention one are none."""
    blocks: list[Block] = []
    for match in _BLOCK.finditer(source.plain):
        line_start = source.plain.rfind("\n", 0, match.start()) + 1
        if source.plain[line_start : match.start()].lstrip().startswith("#"):
            continue
        close = source.closing(match.end() - 1)
        body = close + 1 + len(source.plain[close + 1 :]) - len(source.plain[close + 1 :].lstrip())
        if source.plain[body : body + 1] != "{":
            continue
        names = [source.text[a:b].strip() for a, b in source.split(match.end(), close, ",")]
        blocks.append(_block(source, match.start(), body, source.closing(body) + 1, names))
    return blocks


def _block(source: CppText, start: int, body: int, end: int, names: list[str]) -> Block:
    namespace, key = names[0], names[1] if len(names) == 3 else ""
    if names[-1] != "m" or namespace == "_":
        return Block(start, body, end, namespace, key, (), reason="it registers a fallback, which no operator owns")
    try:
        statements, dropped = _statements(source, body + 1, end - 1, namespace, is_impl=bool(key))
    except NotUnderstood as error:
        return Block(start, body, end, namespace, key, (), reason=str(error))
    return Block(start, body, end, namespace, key, tuple(statements), tuple(dropped))


def _statements(
    source: CppText, start: int, end: int, namespace: str, *, is_impl: bool
) -> tuple[list[Statement], list[tuple[int, int]]]:
    tags: dict[str, str] = {}
    set_up: list[str] = []
    statements: list[Statement] = []
    dropped: list[tuple[int, int]] = []
    for begin, stop in source.split(start, end, ";"):
        begin = _skip_directives(source, begin, stop)
        code = source.text[begin:stop].rstrip()
        if not source.plain[begin:stop].strip():
            continue
        if (call := _CALL.match(source.plain, begin)) is not None:
            if source.plain[source.closing(call.end() - 1) + 1 : stop].strip():
                raise NotUnderstood(f"line {source.line(begin)}: several calls in one statement")
            statements.append(_registration(source, begin, begin + len(code), call, namespace, tags, set_up, is_impl))
            continue
        if (declared := _TAGS.fullmatch(code)) is not None:
            tags[declared[1]] = declared[2]
        elif _SET_UP.fullmatch(code) is not None:
            set_up.append(code)
        elif _PYTHON_MODULE.match(code) is None:  # that names a Python module for an error message, no more
            raise NotUnderstood(f"line {source.line(begin)}: a statement that is no registration")
        dropped.append((begin, stop + 1))
    return statements, dropped


def _skip_directives(source: CppText, begin: int, end: int) -> int:
    """Where the statement itself begins, behind blanks and preprocessor lines."""
    while True:
        while begin < end and source.plain[begin].isspace():
            begin += 1
        directive = _DIRECTIVE.match(source.plain, source.plain.rfind("\n", 0, begin) + 1)
        if begin >= end or source.plain[begin] != "#" or directive is None:
            return begin
        begin = directive.end()


def _registration(
    source: CppText,
    start: int,
    end: int,
    call: re.Match[str],
    namespace: str,
    tags: dict[str, str],
    set_up: list[str],
    is_impl: bool,
) -> Statement:
    if "#" in source.plain[start:end]:
        raise NotUnderstood(f"line {source.line(start)}: a preprocessor line within a statement")
    arguments = [source.text[a:b].strip() for a, b in source.split(call.end(), source.closing(call.end() - 1), ",")]
    literal = _literal(arguments[0])
    operator = None if literal is None else schema_operator(literal, namespace)
    if literal is None or operator is None or (call[1] == "impl") != is_impl:
        raise NotUnderstood(f"line {source.line(start)}: a name that is no literal")
    needs_classes = not is_impl and "torch.classes" in literal
    return Statement(
        start,
        end,
        not is_impl,
        operator,
        literal,
        _function(arguments) if is_impl else None,
        None if is_impl else _tag_list(arguments, tags),
        tuple(set_up) if needs_classes else (),
    )


def _literal(argument: str) -> str | None:
    selective = _SELECTIVE.match(argument)
    return leading_literal(argument[selective.end() :] if selective else argument)


def _function(arguments: list[str]) -> str | None:
    match = _FUNCTION_POINTER.fullmatch(arguments[1]) if len(arguments) == 2 else None
    return None if match is None else match["plain"] or match["cast"] or match["bare"]


def _tag_list(arguments: list[str], tags: dict[str, str]) -> str | None:
    if len(arguments) == 1:
        return "{}"
    if len(arguments) != 2:
        return None
    listed = tags.get(arguments[1], arguments[1])
    return listed if re.fullmatch(r"\{[\w\s:,]*\}", listed) else None
