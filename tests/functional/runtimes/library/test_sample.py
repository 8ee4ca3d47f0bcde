"""A small library with everything that slimming could break, linked by every linker that is installed."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from opsieve.code.elf import PT_LOAD
from opsieve.runtimes.wheel.library.segments import PAGE
from opsieve.runtimes.wheel.library.slim import SlimPlan, slim_library
from tests.functional.runtimes.library.sample_library import (
    LINKERS,
    MemoryImage,
    Sample,
    build_sample,
    is_removed,
    memory,
    unwind_records,
)

RAISING = ("local", "exported", "from here", "address", "table", "jump", "virtual")


@pytest.fixture(scope="module", params=LINKERS)
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return build_sample(tmp_path_factory.mktemp("sample"), request.param)


@pytest.fixture(scope="module")
def slim(sample: Sample) -> Path:
    folder = sample.folder / "slim"
    slim_library(sample.elf(), sample.plan(), folder / "libsample.so")
    return folder


@pytest.mark.parametrize("binding", [{}, {"LD_BIND_NOW": "1"}])
def test_kept_code_behaves_as_before(sample: Sample, slim: Path, binding: dict[str, str]) -> None:
    before = sample.run("ordinary", libraries=sample.folder, **binding)
    after = sample.run("ordinary", libraries=slim, **binding)
    assert before.returncode == 0
    assert "inner custom" in before.stdout
    assert (after.stdout, after.stderr, after.returncode) == (before.stdout, "", 0)


@pytest.mark.parametrize("question", RAISING)
@pytest.mark.parametrize("binding", [{}, {"LD_BIND_NOW": "1"}])
def test_a_removed_function_raises(sample: Sample, slim: Path, question: str, binding: dict[str, str]) -> None:
    done = sample.run(question, "ordinary", libraries=slim, **binding)
    first, _, rest = done.stdout.partition("\n")
    assert first.startswith("raised: function ")
    assert "|removed by opsieve|0|" in first
    assert first.endswith(" was removed")
    assert rest == sample.run("ordinary", libraries=sample.folder).stdout
    assert done.returncode == 0


def test_known_ways_are_led_to_stubs_themselves(sample: Sample, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the jumps at those entries that happen to be in the file, which only catch unknown ways."""
    monkeypatch.setattr("opsieve.runtimes.wheel.library.redirect._entries", lambda *_: 0)
    folder = sample.folder / "without entries"
    report = slim_library(sample.elf(), sample.plan(), folder / "libsample.so")
    done = sample.run(*RAISING, libraries=folder)
    assert done.stdout.count("raised: function ") == len(RAISING), done.stderr
    assert report.redirects is not None
    assert report.redirects.entries == 0
    assert report.redirects.unchanged == 0
    assert report.redirects.symbols >= 2
    assert report.redirects.instructions >= 3


def test_the_guard_names_what_has_no_stub(sample: Sample, slim: Path) -> None:
    done = sample.run("ordinary", "unlisted", "ordinary", libraries=slim)
    assert done.returncode == 86
    assert "libsample.so: the program reached code that is not in this slim build" in done.stderr
    assert "function: removed_unlisted(int) (+0x" in done.stderr
    assert "remedy: keep it" in done.stderr


def test_the_guard_names_the_operator_and_the_caller(sample: Sample) -> None:
    folder = sample.folder / "without stubs"
    slim_library(sample.elf(), sample.plan(raising=False), folder / "libsample.so")
    done = sample.run("exported", libraries=folder)
    assert done.returncode == 86
    assert "function: removed_exported(int) (+0x" in done.stderr
    assert "operator: aten::sample.out\n  remedy: build again with --op aten::sample.out\n" in done.stderr
    assert "called from: +0x" in done.stderr
    assert "_Z27kept_calls_removed_exportedi" in done.stderr


def test_unknown_ways_into_removed_code_are_caught_on_every_page(sample: Sample, slim: Path) -> None:
    functions = sample.graph.functions
    start = int(functions.starts[sample.index("kept_through_unknown")])
    removed = sample.index("removed_unlisted")
    first, end = int(functions.starts[removed]), int(functions.ends[removed])
    # The first bytes of the function share a page with kept code (a trap), the middle ones do not (a hole).
    for address in (first, (first + end) // 2, end - 1):
        done = sample.run(f"at {address - start}", libraries=slim)
        assert done.returncode == 86, done
        assert f"function: removed_unlisted(int) (+{address:#x})" in done.stderr


def test_reading_removed_constants_is_reported(sample: Sample) -> None:
    """The reader stays but its reference is hidden, as if the analysis had missed it."""
    reader = sample.index("removed_reader")
    plan = sample.plan(keep=reader)
    references = sample.graph.references
    from_reader = sample.graph.functions.owner(references.operand_sites) == reader
    hidden = replace(references, operand_sites=np.where(from_reader, 0, references.operand_sites))
    folder = sample.folder / "without constants"
    slim_library(sample.elf(), plan, folder / "with.so")
    slim_library(sample.elf(), replace(plan, references=hidden), folder / "libsample.so")
    done = sample.run("constant", libraries=folder)
    assert done.returncode == 86
    assert "the program read data that is not in this slim build (+0x" in done.stderr
    assert "read by: +0x" in done.stderr
    (folder / "with.so").rename(folder / "libsample.so")
    assert sample.run("constant", libraries=folder).stdout == "182.000000\n"


def test_every_kept_byte_is_at_its_address(sample: Sample, slim: Path) -> None:
    plan = sample.plan()
    assert plan.code is not None
    old, new = sample.elf(), MemoryImage(slim / "libsample.so")
    for start, end in plan.code.kept:
        before, after = memory(old, start, end), memory(new, start, end)
        changed = np.flatnonzero(before != after)
        # Only the distances of calls, jumps and LEAs that lead to stubs may differ.
        sites = np.concatenate([sample.graph.references.branch_sites, sample.graph.references.operand_sites])
        inside = np.sort(sites[(sites >= start) & (sites < end)]) - start
        instruction = inside[np.searchsorted(inside, changed, "right") - 1] if len(changed) else changed
        assert np.all((changed - instruction > 0) & (changed - instruction < 8))


def test_removed_code_is_gone(sample: Sample, slim: Path) -> None:
    plan = sample.plan()
    assert plan.code is not None
    new = MemoryImage(slim / "libsample.so")
    references, functions = sample.graph.references, sample.graph.functions
    shared = shared_pages(new)
    assert shared
    known = [functions.entries, references.branch_targets, references.operand_targets]
    removed_bytes = 0
    for start, end in plan.code.removed:
        contents = memory(new, start, end, hole=0xCC)
        for place in {int(place) for place in np.concatenate(known) if start <= place < end}:
            assert contents[place - start] in (0xCC, 0xE9), hex(place)  # a trap, or a jump to a stub
            if contents[place - start] == 0xE9:
                assert place // PAGE not in shared
                contents[place - start : place - start + 5] = 0xCC
        own_page = [address // PAGE not in shared for address in range(start, end)]
        assert np.all(contents[own_page] == 0xCC)
        removed_bytes += sum(own_page)
    assert removed_bytes > 20_000
    assert len(new.bytes) < sample.library.stat().st_size


def shared_pages(elf: MemoryImage) -> set[int]:
    """Numbers of the pages of code that come from a page of the file from which another page of code comes too."""
    memory_pages = defaultdict(list)
    for segment in elf.segments:
        if segment["type"] == PT_LOAD and segment["flags"] & 1:
            address, size, offset = (int(segment[name]) for name in ("vaddr", "filesz", "offset"))
            for page in range(address // PAGE, (address + size - 1) // PAGE + 1):
                memory_pages[offset // PAGE + page - address // PAGE].append(page)
    return {page for pages in memory_pages.values() if len(pages) > 1 for page in pages}


def test_the_report_counts_every_byte_once(sample: Sample, tmp_path: Path) -> None:
    report = slim_library(sample.elf(), sample.plan(), tmp_path / "lib.so")
    assert report.file_size == (tmp_path / "lib.so").stat().st_size
    in_file = sum(section.in_file for section in report.sections)
    total = in_file + report.between_sections + sum(report.additions.values()) + report.padding - report.shared
    assert total == report.file_size
    assert report.shared > 0
    assert report.between_sections >= 64
    text = next(section for section in report.sections if section.name == ".text")
    assert text.needed <= text.in_file < text.stock


def test_readers_accept_the_file(sample: Sample, slim: Path) -> None:
    for option in ("-hlW", "-SW", "-dW", "--dyn-syms", "-rW", "-nW"):
        command = ["readelf", option, slim / "libsample.so"]
        if option in ("--dyn-syms", "-rW"):
            command.insert(1, "--use-dynamic")
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        assert "arning" not in done.stdout
    with (slim / "libsample.so").open("rb") as stream:
        loads = [s for s in ELFFile(stream).iter_segments() if s["p_type"] == "PT_LOAD"]
        addresses = [s["p_vaddr"] for s in loads]
        assert addresses == sorted(addresses)
        assert all((s["p_vaddr"] - s["p_offset"]) % s["p_align"] == 0 for s in loads)


def test_unwinding_records_say_the_same_as_before(sample: Sample, slim: Path) -> None:
    old, new = unwind_records(sample.elf()), unwind_records(MemoryImage(slim / "libsample.so"))
    functions = sample.graph.functions
    removed = {int(functions.starts[i]) for i, name in enumerate(sample.names) if is_removed(name)}
    assert set(new) == {start for start in old if start not in removed}
    for start, record in new.items():
        assert record == old[start]


def test_stripping_changes_nothing_that_is_loaded(sample: Sample) -> None:
    folder = sample.folder / "stripped"
    report = slim_library(sample.elf(), SlimPlan(), folder / "libsample.so")
    everything = ("ordinary", *RAISING, "unlisted", "constant")
    before = sample.run(*everything, libraries=sample.folder)
    after = sample.run(*everything, libraries=folder)
    assert (after.stdout, after.returncode) == (before.stdout, 0)
    assert report.file_size < report.stock_size
    assert report.segments == sum(s["type"] == 1 for s in sample.elf().segments)
