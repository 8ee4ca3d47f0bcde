"""Leaving out operators that code refers to, because the user chose so: something else takes their entries' place.

Entries are weak, so an ordinary definition of an operator's symbol is what every reference then leads to. The entry
itself, its kernels and all that these need are no longer referred to, and go. Calling the operator raises PyTorch's own
error for an operator that is not registered.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_ENTRY = """\
asm(".pushsection .opsieve_left_out.{number},\\"a\\",%progbits\\n"
    ".globl {symbol}\\n.hidden {symbol}\\n{symbol}:\\n.byte 0\\n.popsection");
"""


def write_left_out(symbols: Iterable[str], target: Path) -> None:
    """Write a C++ source that defines each operator's symbol as a byte that nothing reads."""
    lines = [_ENTRY.format(number=number, symbol=symbol) for number, symbol in enumerate(sorted(symbols))]
    target.write_text("// Written by opsieve.\n" + "".join(lines), encoding="utf-8")
