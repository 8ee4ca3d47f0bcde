"""The functions of a library: where each starts and ends, and what it is called.

The text section is tiled without holes. Every symbol of type FUNC starts a function. What lies between the end of
one sized function and the next start is alignment, or code that has no sized symbol: hand-written assembly with
bare labels (MKL, NNPACK) and functions that lost their name. Such a gap of 16 bytes or more is a function of its
own, so that no byte of code is ever without an owner.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opsieve.code.elf import STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, ElfFile, Int64s, Records
from opsieve.code.plt import PLT_SECTIONS
from opsieve.errors import UnsupportedLibrary

SMALLEST_GAP = 16
"""Bytes; GCC and gold align functions to 16, so anything shorter can only be padding."""

_CODE_SECTIONS = (".text", ".init", ".fini", *PLT_SECTIONS)


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """All functions in address order, as parallel arrays."""

    starts: Int64s
    """Address of the first byte of each."""

    ends: Int64s
    """Address behind the last byte; equal to the next start, so padding belongs to the function before it."""

    names: Int64s
    """Offset of the name in `.strtab`, -1 for a gap."""

    entries: Int64s
    """Sorted addresses at which decoding starts anew: all starts, and the labels inside gaps."""

    def __len__(self) -> int:
        return len(self.starts)

    def owner(self, addresses: Int64s) -> Int64s:
        """The index of the function that holds each address, -1 for an address outside the text."""
        index = np.searchsorted(self.starts, addresses, "right") - 1
        outside = (index < 0) | (addresses >= self.ends[index])
        return np.where(outside, -1, index)


def read_functions(elf: ElfFile) -> FunctionTable:
    """Build the function table from `.symtab`. Raises UnsupportedLibrary when the library has none, or has code in
    other sections than `.text`."""
    _require_known_sections(elf)
    text = elf.section(".text")
    require_symbols(elf)
    symbols = elf.symbols
    kind = symbols["info"] & 15
    here = (symbols["shndx"] == text.index) & (symbols["value"] >= text.address) & (symbols["value"] < text.end)
    functions = symbols[here & ((kind == STT_FUNC) | (kind == STT_GNU_IFUNC))]
    if not len(functions):
        raise UnsupportedLibrary("the library has no code of its own", where=elf.path)
    labels = symbols[here & (kind == STT_NOTYPE)]["value"].astype(np.int64)
    starts, sizes, names = _one_per_address(functions, text.end)
    gaps = _gaps(starts, sizes, text.address, text.end)
    all_starts = np.concatenate([starts, gaps])
    order = np.argsort(all_starts)
    tiled = all_starts[order]
    return FunctionTable(
        starts=tiled,
        ends=np.append(tiled[1:], text.end),
        names=np.concatenate([names, np.full(len(gaps), -1, np.int64)])[order],
        entries=np.unique(np.concatenate([tiled, _inside_gaps(labels, starts, sizes)])),
    )


def require_symbols(elf: ElfFile) -> None:
    """Raise UnsupportedLibrary when the library has no symbol table."""
    if not len(elf.symbols):
        raise UnsupportedLibrary(
            "the library has no symbol table, so its operators cannot be told apart",
            where=elf.path,
            expected="an unstripped library, as the PyTorch wheels ship it",
            remedy="install the original wheel again",
        )


def _require_known_sections(elf: ElfFile) -> None:
    """`.init` and `.fini` hold only the few instructions that every library gets from the compiler (crti.o)."""
    unknown = [s.name for s in elf.sections if s.executable and s.size and s.name not in _CODE_SECTIONS]
    if unknown:
        raise UnsupportedLibrary(
            f"the library has code in section {unknown[0]}, which is not analysed",
            where=elf.path,
            expected=f"code in {', '.join(_CODE_SECTIONS)} only",
        )


def _one_per_address(functions: Records, end: int) -> tuple[Int64s, Int64s, Int64s]:
    """Aliases share an address: take the largest size, and of these the name that stands first in the table.

    A size cannot reach behind `end`, the end of the section.
    """
    sizes = np.minimum(functions["size"], np.uint64(end) - functions["value"]).astype(np.int64)
    order = np.lexsort((-sizes, functions["value"]))
    starts, first = np.unique(functions["value"][order].astype(np.int64), return_index=True)
    chosen = order[first]
    return starts, sizes[chosen], functions["name"][chosen].astype(np.int64)


def _gaps(starts: Int64s, sizes: Int64s, low: int, high: int) -> Int64s:
    """Start addresses of the stretches that no sized function covers. A function of size 0 leaves no gap:
    it reaches to the next start."""
    ends = np.maximum.accumulate(np.where(sizes > 0, starts + sizes, 0))
    following = np.append(starts[1:], high)
    found = (following - ends >= SMALLEST_GAP) & (sizes > 0)
    gaps = ends[found]
    if starts[0] - low >= SMALLEST_GAP:
        gaps = np.insert(gaps, 0, low)
    return gaps.astype(np.int64)


def _inside_gaps(labels: Int64s, starts: Int64s, sizes: Int64s) -> Int64s:
    """Labels inside a sized function are its own jump targets; only the others start code of their own."""
    index = np.searchsorted(starts, labels, "right") - 1
    covered = (index >= 0) & (labels < starts[index] + sizes[index])
    return labels[~covered]
