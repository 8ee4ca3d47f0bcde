"""Every reference that a library's instructions make, found by decoding all of its code in parallel."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opsieve.code.elf import EM_X86_64, ElfFile, Int64s
from opsieve.code.functions import FunctionTable
from opsieve.code.x86_64 import Flags
from opsieve.errors import OpsieveError, UnsupportedLibrary
from opsieve.progress import SILENT, Advance, Progress

WORKERS = 2
"""Decoding processes. More gain little: reading their results back is not parallel."""


@dataclass(frozen=True, slots=True)
class References:
    """Operands and branches of all instructions, in address order. Addresses as they are in memory."""

    operand_sites: Int64s
    operand_targets: Int64s
    operand_is_address: Flags
    """LEA takes the address; anything else loads, stores or jumps through it."""

    branch_sites: Int64s
    branch_targets: Int64s
    branch_is_call: Flags
    falls_through: Int64s
    """Addresses behind functions that let control run into what follows."""


def read_references(elf: ElfFile, functions: FunctionTable, progress: Progress = SILENT) -> References:
    """Decode all functions. Raises UnsupportedLibrary for a processor other than x86-64."""
    require_processor(elf)
    with tempfile.TemporaryDirectory(prefix="opsieve-") as folder:
        entries = Path(folder) / "entries.npy"
        np.save(entries, np.append(functions.entries, functions.ends[-1:]))
        parts = [Path(folder) / f"part{number}.npz" for number in range(WORKERS)]
        with progress.stage("decoding", int(functions.ends[-1] - functions.starts[0])) as advance:
            _run_workers(elf.path, entries, parts, advance)
        return _join([dict(np.load(part)) for part in parts])


def require_processor(elf: ElfFile) -> None:
    """Raise UnsupportedLibrary when the code is for another processor than x86-64."""
    if elf.machine != EM_X86_64:
        raise UnsupportedLibrary(
            f"the library is for another processor (ELF machine {elf.machine})",
            where=elf.path,
            expected="x86-64 (62)",
        )


def _run_workers(library: Path, entries: Path, parts: list[Path], advance: Advance) -> None:
    from opsieve.code import decode_worker

    command = [sys.executable, "-P", "-m", decode_worker.__name__, str(library), str(entries)]
    workers = [
        subprocess.Popen([*command, str(number), str(len(parts)), str(part)], stdout=subprocess.PIPE, text=True)
        for number, part in enumerate(parts)
    ]
    try:
        for worker in workers:
            for line in worker.stdout or ():
                advance(int(line))
        failed = [worker.args for worker in workers if worker.wait() != 0]
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    if failed:
        raise OpsieveError("a decoding process failed", where=library, remedy="run again with --debug")


def _join(parts: list[dict[str, np.ndarray]]) -> References:
    """Workers take turns at stretches of code, so their results interleave: sort them by address."""
    # A small library gives some workers nothing to do, and what they return has no type of its own.
    filled = [part for part in parts if any(map(len, part.values()))] or parts
    joined = {name: np.concatenate([part[name] for part in filled]) for name in parts[0]}
    operands = np.argsort(joined["operand_sites"], kind="stable")
    branches = np.argsort(joined["branch_sites"], kind="stable")
    return References(
        operand_sites=joined["operand_sites"][operands],
        operand_targets=joined["operand_targets"][operands],
        operand_is_address=joined["operand_is_address"][operands],
        branch_sites=joined["branch_sites"][branches],
        branch_targets=joined["branch_targets"][branches],
        branch_is_call=joined["branch_is_call"][branches],
        falls_through=np.sort(joined["falls_through"]),
    )
