from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
import pytest

from opsieve.code import decode_worker
from opsieve.code.elf import EM_AARCH64, ElfFile
from opsieve.code.functions import read_functions
from opsieve.code.references import References, _join, read_references
from opsieve.errors import OpsieveError, UnsupportedLibrary
from opsieve.progress import Advance
from tests.unit.native import Compiler, decode_here

SHAPES = Path(__file__).parent / "sources" / "shapes.cpp"


@dataclass
class RecordingProgress:
    """Remembers the stages and how far each went."""

    stages: list[tuple[str, int | None]] = field(default_factory=list)
    advances: list[int] = field(default_factory=list)
    open: int = 0

    @contextmanager
    def stage(self, title: str, total: int | None = None) -> Iterator[Advance]:
        self.stages.append((title, total))
        self.open += 1
        yield self.advances.append
        self.open -= 1


@pytest.fixture
def elf(compiler: Compiler) -> ElfFile:
    return ElfFile(compiler.library(SHAPES, flags=["-O2"]))


def assert_same(found: References, expected: References) -> None:
    for column in fields(References):
        np.testing.assert_array_equal(getattr(found, column.name), getattr(expected, column.name))


def test_two_processes_find_what_one_finds_and_tell_how_far_they_are(elf: ElfFile) -> None:
    progress = RecordingProgress()
    functions = read_functions(elf)
    found = read_references(elf, functions, progress)
    size = int(functions.ends[-1] - functions.starts[0])
    assert progress.stages == [("decoding", size)]
    assert sum(progress.advances) == size
    assert progress.open == 0
    assert len(found.operand_sites) > 10
    assert_same(found, decode_here(elf, functions))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_stretches_in_turns_give_the_same_in_address_order(
    elf: ElfFile, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions = read_functions(elf)
    whole = decode_here(elf, functions)
    entries = np.append(functions.entries, functions.ends[-1:])
    monkeypatch.setattr(decode_worker, "STRETCH", 128)
    parts = [decode_worker.run(elf.path, entries, number, workers) for number in range(workers)]
    assert sum(len(part["operand_sites"]) > 0 for part in parts) == workers
    assert_same(_join(parts), whole)
    assert (np.diff(whole.operand_sites) > 0).all()
    assert (np.diff(whole.branch_sites) > 0).all()


def test_another_processor_is_refused(elf: ElfFile, tmp_path: Path) -> None:
    raw = bytearray(elf.path.read_bytes())
    raw[18:20] = EM_AARCH64.to_bytes(2, "little")
    other = tmp_path / "other.so"
    other.write_bytes(raw)
    moved = ElfFile(other)
    with pytest.raises(UnsupportedLibrary, match="another processor") as fault:
        read_references(moved, read_functions(moved))
    assert fault.value.expected == "x86-64 (62)"


def test_a_process_that_fails_is_a_fault_and_leaves_none_behind(elf: ElfFile, tmp_path: Path) -> None:
    copy = tmp_path / "copy.so"
    copy.write_bytes(elf.path.read_bytes())
    opened = ElfFile(copy)
    functions = read_functions(opened)
    copy.unlink()
    progress = RecordingProgress()
    with pytest.raises(OpsieveError, match="decoding process failed"):
        read_references(opened, functions, progress)
