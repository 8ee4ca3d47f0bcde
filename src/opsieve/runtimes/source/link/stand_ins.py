"""Definitions that throw, for what live code refers to and the runtime does not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opsieve.runtimes.source.index.symbols import read_symbol

_LONG = 80
"""Characters of a function's name above which its arguments are not told."""

_HEAD = """\
// Written by opsieve.
namespace opsieve {
[[noreturn]] void missing(const char* what, const char* why);
}
"""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A symbol, the source that would define it, and why that is not there."""

    symbol: str
    source: str
    reason: str


def write_stand_ins(stand_ins: Iterable[StandIn], target: Path) -> None:
    """Write a C++ source that defines each symbol: a function throws when called, data is all zero.

    Throwing before it returns, a function fits every signature. Data that is zero is what PyTorch's own checks report:
    a dispatch stub without kernel, for one.
    """
    lines = [_HEAD]
    for number, item in enumerate(sorted(stand_ins, key=lambda item: item.symbol)):
        name, here = read_symbol(item.symbol).demangled, f"opsieve_stand_in_{number}"
        if _is_function(name):
            why = f"{item.source} was not compiled: {item.reason}" if item.reason else f"{item.source} was left out"
            lines.append(f'extern "C" void {here}() asm({_literal(item.symbol)});')
            lines.append(f'extern "C" void {here}() {{ opsieve::missing({_literal(_shown(name))}, {_literal(why)}); }}')
        else:
            lines.append(f'extern "C" {{ extern void* const {here}[8] asm({_literal(item.symbol)}); }}')
            lines.append(f"void* const {here}[8] = {{}};")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _is_function(demangled: str) -> bool:
    return demangled.rstrip().endswith((")", ") const"))


def _shown(name: str) -> str:
    """A function without its arguments, if these are long: with the standard library's types they fill a screen."""
    depth = 0
    for place in range(name.rfind(")"), 0, -1) if len(name) > _LONG else ():
        depth += (name[place] == ")") - (name[place] == "(")
        if depth == 0:
            return name[:place]
    return name


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'
