"""The code graph of the real library against a second reading of random parts of it."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.code.graph import CodeGraph
from opsieve.code.plt import unknown_entries
from opsieve.graph.load import LIBRARY
from opsieve.graph.op_graph import OpGraph
from opsieve.installed import TorchInstall
from tests.unit.code.oracle import oracle

pytestmark = pytest.mark.torch

SAMPLE = 5000
LARGEST = 20_000
"""Bytes; a few generated functions are so large that they would take longer than all others together."""


@pytest.fixture(scope="module")
def elf(torch_install: TorchInstall) -> ElfFile:
    return ElfFile(torch_install.library(LIBRARY))


@pytest.fixture(scope="module")
def code(cached_graph: OpGraph) -> CodeGraph:
    return cached_graph.code


@pytest.mark.parametrize("seed", [1])
def test_random_functions_are_read_as_iced_reads_them(elf: ElfFile, code: CodeGraph, seed: int) -> None:
    text = elf.section(".text")
    bounds = [*code.functions.entries.tolist(), text.end]
    stretches = [(a, b) for a, b in pairwise(bounds) if b - a < LARGEST]
    found, references = 0, code.references
    for start, end in random.Random(seed).sample(stretches, SAMPLE):
        body = elf.bytes[text.offset + start - text.address : text.offset + end - text.address].tobytes()
        expected = oracle(body, start, [(start, end)])
        low, high = np.searchsorted(references.operand_sites, [start, end])
        columns = (references.operand_sites, references.operand_targets, references.operand_is_address)
        operands = set(zip(*(column[low:high].tolist() for column in columns), strict=True))
        assert {triple for triple in operands if triple[0] not in expected.invalid} == expected.operands
        low, high = np.searchsorted(references.branch_sites, [start, end])
        columns = (references.branch_sites, references.branch_targets, references.branch_is_call)
        branches = set(zip(*(column[low:high].tolist() for column in columns), strict=True))
        assert {triple for triple in branches if triple[0] not in expected.invalid} == expected.branches
        if end not in expected.unclear:
            assert (end in references.falls_through) == bool(expected.falls_through)
        found += len(operands) + len(branches)
    assert found > 5 * SAMPLE


def test_every_branch_leads_to_a_function_or_through_the_linkage_table(elf: ElfFile, code: CodeGraph) -> None:
    targets = code.references.branch_targets
    assert len(targets) > 3_000_000
    known = (code.functions.owner(targets) >= 0) | (code.plt.index(targets) >= 0)
    assert known.all()
    assert len(unknown_entries(elf, code.plt, targets)) == 0


def test_calls_lead_to_the_first_byte_of_a_function(code: CodeGraph) -> None:
    calls = code.references.branch_targets[code.references.branch_is_call]
    inside = code.plt.resolve(calls)
    inside = inside[inside >= 0]
    # Hand-written assembly of MKL calls into labels that have no symbol.
    assert np.isin(inside, code.functions.entries).mean() > 0.99999


def test_functions_and_data_cover_their_sections(elf: ElfFile, code: CodeGraph) -> None:
    text = elf.section(".text")
    assert code.functions.starts[0] == text.address
    assert code.functions.ends[-1] == text.end
    assert (code.functions.starts[1:] == code.functions.ends[:-1]).all()
    for name in (".rodata", ".data.rel.ro", ".data", ".bss", ".got"):
        section = elf.section(name)
        first, last = code.data.owner(np.array([section.address, section.end - 1]))
        assert (code.data.starts[first], code.data.ends[last]) == (section.address, section.end)


def test_no_part_of_a_function_is_unreachable_from_everything(elf: ElfFile, code: CodeGraph) -> None:
    """`.cold` parts hang on something: a jump, or the function they were cut from."""
    names = elf.names_of(code.functions.names)
    cold = np.array([b".cold" in name for name in names])
    assert cold.sum() > 50_000
    entered = np.zeros(code.node_count, bool)
    entered[code.targets] = True
    assert entered[: len(names)][cold].all()
