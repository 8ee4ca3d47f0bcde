"""What the index stores and what it answers: plain values, written as MessagePack."""

from __future__ import annotations

import msgspec


class Definition(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One definition that the text of a file makes."""

    file: int
    """Place in the list of files."""

    kind: str
    """`function`, `template function`, `variable`, `possible variable` (it may be a declaration), `instantiation`,
    `class instantiation`."""

    arguments: str
    """Template arguments as written."""

    parameters: str | None
    macro: str
    certainty: int
    """2: it is compiled, 1: nobody knows, 0: an `#if` leaves it out."""


class IndexData(msgspec.Struct, frozen=True):
    """Everything the index knows, in the form that is saved."""

    format: int
    files: tuple[str, ...]
    definitions: dict[str, tuple[Definition, ...]]
    """By qualified name."""

    classes: dict[str, str]
    """Classes with virtual functions: the name of the key function, empty if there is none."""

    aliases: dict[str, tuple[str, ...]]


class Candidate(msgspec.Struct, frozen=True):
    """A file that may define a symbol."""

    path: str
    rule: str
    """How it was found, for people."""


class Unplaced(msgspec.Struct, frozen=True):
    """A symbol for which no file is left to try, with everything that helps to see why."""

    symbol: str
    demangled: str
    referenced_by: tuple[str, ...]
    """Objects or functions, as the caller knows them."""

    tried: tuple[Candidate, ...]
    """Files that were compiled and do not define it, with the rule that led to each."""

    near: tuple[Candidate, ...]
    """Files that define something of the same last name, elsewhere; they were not tried."""

    def __str__(self) -> str:
        lines = [f"no source file is known to define {self.demangled} (symbol {self.symbol})"]
        if self.referenced_by:
            lines.append(f"  wanted by {_some(self.referenced_by)}")
        lines += [f"  tried {one.path}: {one.rule}; its object does not define it" for one in self.tried]
        lines += [f"  not tried {one.path}: {one.rule}" for one in self.near]
        return "\n".join(lines)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
