"""Damaged libraries: one clear error or a library, never a traceback, whatever byte is wrong."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsieve.code.elf import ElfFile
from opsieve.errors import OpsieveError
from opsieve.runtimes.wheel.library.slim import SlimPlan, slim_library
from tests.functional.runtimes.library.sample_library import Sample, build_sample

TABLES = (".eh_frame", ".gcc_except_table", ".dynamic", ".dynsym", ".rela.dyn", ".rela.plt", ".dynstr", ".plt")
VALUES = st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]) | st.integers(0, 255)


@pytest.fixture(scope="module", params=["gold", "bfd"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return build_sample(tmp_path_factory.mktemp("sample"), request.param)


def slim_damaged(sample: Sample, changes: list[tuple[int, int]]) -> None:
    """Damage a copy, and make it slim; only an error of ours may come out."""
    damaged = sample.folder / "damaged.so"
    shutil.copy(sample.library, damaged)
    contents = np.fromfile(damaged, np.uint8)
    for place, value in changes:
        contents[place % len(contents)] = value
    contents.tofile(damaged)
    for plan in (sample.plan(), SlimPlan()):
        with contextlib.suppress(OpsieveError):
            slim_library(ElfFile(damaged), plan, sample.folder / "out.so", force=True)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_tables(sample: Sample, data: st.DataObject) -> None:
    section = sample.elf().section(data.draw(st.sampled_from(TABLES)))
    place = st.integers(section.offset, section.offset + section.size - 1)
    slim_damaged(sample, data.draw(st.lists(st.tuples(place, VALUES), min_size=1, max_size=4)))


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, 64 + 12 * 56), VALUES), min_size=1, max_size=3))
def test_damaged_headers(sample: Sample, changes: list[tuple[int, int]]) -> None:
    slim_damaged(sample, changes)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_section_headers(sample: Sample, data: st.DataObject) -> None:
    start = int(sample.elf().header["shoff"])
    place = st.integers(start, sample.library.stat().st_size - 1)
    slim_damaged(sample, data.draw(st.lists(st.tuples(place, VALUES), min_size=1, max_size=3)))


@pytest.mark.parametrize("size", [0, 3, 64, 700, 5000, 30000])
def test_truncated_files(sample: Sample, size: int, tmp_path: Path) -> None:
    short = tmp_path / "short.so"
    short.write_bytes(sample.library.read_bytes()[:size])
    with pytest.raises(OpsieveError, match=r"short\.so"):
        slim_library(ElfFile(short), sample.plan(), tmp_path / "out.so")
    assert not (tmp_path / "out.so").exists()
