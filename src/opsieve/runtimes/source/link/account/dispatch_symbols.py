"""A second way to what a program can dispatch: by its symbols alone.

An operator X of native_functions.yaml is dispatched by `at::_ops::X::call` and `at::_ops::X::redispatch`, where X is
the operator's unambiguous name; the generated headers tell its name and overload. What a linked program defines of
these is what live code can dispatch. Lookups by name (`findSchemaOrThrow("aten::x", "")`) have no such symbol.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from opsieve.code.elf import SHN_UNDEF, ElfFile
from opsieve.operators import OperatorName

_SYMBOL = re.compile(rb"_ZN2at4_ops(\d{1,3})(\w+)")
_CALLS = (b"4callE", b"10redispatchE")
_STRUCT = re.compile(r"^struct (?:TORCH_API )?(\w+) \{", re.MULTILINE)
_NAME = re.compile(r"\bname(?:,| =) *\"([\w:]+)\"")
_OVERLOAD = re.compile(r"\boverload_name(?:,| =) *\"(\w*)\"")


def dispatch_names(headers: Path) -> dict[str, OperatorName]:
    """Unambiguous name -> operator, from a folder of generated headers (`ops/*_ops.h`)."""
    found = {}
    for file in sorted(headers.glob("*_ops.h")):
        text = file.read_text(encoding="utf-8", errors="replace")
        for struct in _STRUCT.finditer(text):
            name, overload = _NAME.search(text, struct.end()), _OVERLOAD.search(text, struct.end())
            if name is not None and overload is not None:
                namespace, _, base = name[1].partition("::")
                found[struct[1]] = OperatorName(namespace, base, overload[1])
    return found


def dispatched(program: ElfFile, names: Mapping[str, OperatorName]) -> frozenset[OperatorName]:
    """The operators that a program, not stripped, has the code to dispatch."""
    symbols = program.symbols[program.symbols["shndx"] != SHN_UNDEF]
    texts = program.names_of(symbols["name"].astype(np.int64)) if len(symbols) else []
    return frozenset(names[name] for name in filter(None, map(_unambiguous_name, texts)) if name in names)


def _unambiguous_name(symbol: bytes) -> str | None:
    match = _SYMBOL.match(symbol)
    if match is None:
        return None
    length = int(match[1])
    name, rest = match[2][:length], match[2][length:]
    return name.decode("ascii", "replace") if rest.startswith(_CALLS) else None
