"""The lists of source files in PyTorch's `build_variables.bzl`, read as data.

PyTorch's CMake runs the file with Python's `exec` to learn a list (`append_filelist` in cmake/Codegen.cmake). A tree
may come from anywhere, so here nothing of it runs: the syntax tree is walked, and only what builds lists of strings is
understood. A list that needs anything else is left out; asking for it is an error that names the line.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import InvalidSourceTree

LISTS_FILE = "build_variables.bzl"

MAX_BYTES = 4 * 2**20
"""The file of PyTorch 2.6.0 has 66 kB."""

MAX_ENTRIES = 50_000
"""Of one list, while it is put together. The longest of PyTorch 2.6.0 has 350."""

MAX_TEXT = 4096
"""Characters of one string."""

Value = str | list[str]


class _NotUnderstood(Exception):
    """An expression that is more than strings and lists of strings."""

    def __init__(self, node: ast.AST) -> None:
        super().__init__(f"line {getattr(node, 'lineno', '?')}")


@dataclass(frozen=True, slots=True)
class BuildLists:
    """The lists of one `build_variables.bzl`."""

    file: Path
    lists: Mapping[str, tuple[str, ...]]
    not_understood: Mapping[str, str]
    """Names that stand for something else, with the line that says so."""

    def get(self, name: str) -> tuple[str, ...]:
        """The list called `name`, in the file's order; empty if the file has none of that name.

        Which lists there are differs between versions. Raises InvalidSourceTree for one that cannot be read as data.
        """
        if name in self.not_understood:
            raise InvalidSourceTree(
                f"the list {name} cannot be read as data",
                where=f"{self.file}, {self.not_understood[name]}",
                expected="strings, lists, names of other lists, `+`, sorted() and simple comprehensions",
            )
        return self.lists.get(name, ())


def read_build_lists(file: Path) -> BuildLists:
    """Read every list of strings that `file` assigns to a name at its top level, without running it.

    Raises InvalidSourceTree for a file that is no Python text or larger than MAX_BYTES.
    """
    module = _parse(file)
    values: dict[str, Value] = {}
    not_understood: dict[str, str] = {}
    for statement in module.body:
        for name, expression in _assignments(statement):
            try:
                values[name] = _value(expression, values)
                not_understood.pop(name, None)
            except (_NotUnderstood, RecursionError) as error:
                values.pop(name, None)
                not_understood[name] = str(error) if isinstance(error, _NotUnderstood) else f"line {statement.lineno}"
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return BuildLists(file, lists, not_understood)


def _parse(file: Path) -> ast.Module:
    try:
        with file.open("rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        if len(text) > MAX_BYTES:
            raise InvalidSourceTree("the file is too large", where=file, expected=f"at most {MAX_BYTES} bytes")
        return ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidSourceTree(f"the lists of source files cannot be read: {error}", where=file) from error


def _assignments(statement: ast.stmt) -> list[tuple[str, ast.expr]]:
    """The names that `statement` binds, each with the expression of its new value."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            return [(target.id, value) for target in targets if isinstance(target, ast.Name)]
        case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
            before = ast.copy_location(ast.Name(name, ast.Load()), target)
            return [(name, ast.copy_location(ast.BinOp(before, operator, value), statement))]
        case _:
            return []


def _value(node: ast.expr, names: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            return [_text(element, names) for element in elements]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _sum(node, _value(left, names), _value(right, names))
        case ast.Call(func=ast.Name(id="sorted" | "list" as function), args=[argument], keywords=[]):
            entries = _list(argument, names)
            return sorted(entries) if function == "sorted" else entries
        case ast.ListComp(elt=element, generators=[ast.comprehension(target=ast.Name(id=name), ifs=[]) as source]):
            return [_text(element, {**names, name: entry}) for entry in _list(source.iter, names)]
        case _:
            raise _NotUnderstood(node)


def _sum(node: ast.BinOp, left: Value, right: Value) -> Value:
    if isinstance(left, str) and isinstance(right, str) and len(left) + len(right) <= MAX_TEXT:
        return left + right
    if isinstance(left, list) and isinstance(right, list) and len(left) + len(right) <= MAX_ENTRIES:
        return left + right
    raise _NotUnderstood(node)


def _text(node: ast.expr, names: Mapping[str, Value]) -> str:
    value = _value(node, names)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise _NotUnderstood(node)
    return value


def _list(node: ast.expr, names: Mapping[str, Value]) -> list[str]:
    value = _value(node, names)
    if not isinstance(value, list):
        raise _NotUnderstood(node)
    return value
