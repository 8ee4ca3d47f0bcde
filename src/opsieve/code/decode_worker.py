"""One decoding process: `python -m opsieve.code.decode_worker LIBRARY ENTRIES NUMBER COUNT OUTPUT`.

A process of its own rather than a forked one: forking a program that shows a progress bar from a thread is unsafe,
and the spawned workers of `multiprocessing` would run the caller's script once more.
Prints the number of bytes decoded after each stretch, for the progress bar.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from opsieve.code.elf import ElfFile, Int64s
from opsieve.code.x86_64 import Decoded, decode

STRETCH = 4 << 20
"""Bytes of code decoded at a time."""


def run(library: Path, entries: Int64s, number: int, count: int) -> dict[str, np.ndarray]:
    """Decode every `count`-th stretch, beginning with stretch `number`; the columns of all results joined."""
    elf = ElfFile(library)
    text = elf.section(".text")
    code = elf.contents(text)
    starts, ends = entries[:-1], entries[1:]
    cuts = np.unique(np.searchsorted(starts, np.arange(text.address, text.end, STRETCH)))
    bounds = np.append(cuts[cuts < len(starts)], len(starts))
    columns: dict[str, list[np.ndarray]] = {field.name: [] for field in fields(Decoded)[:-1]}
    for low, high in list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))[number::count]:
        first, last = int(starts[low]), int(ends[high - 1])
        part = decode(code[first - text.address : last - text.address], first, starts[low:high], ends[low:high])
        for name, arrays in columns.items():
            arrays.append(getattr(part, name))
        print(last - first, flush=True)  # noqa: T201 (the protocol of this process)
    return {name: np.concatenate(arrays) if arrays else np.empty(0, np.int64) for name, arrays in columns.items()}


if __name__ == "__main__":
    library, entries, number, count, output = sys.argv[1:]
    columns: dict[str, Any] = {**run(Path(library), np.load(entries), int(number), int(count))}
    np.savez(output, **columns)
