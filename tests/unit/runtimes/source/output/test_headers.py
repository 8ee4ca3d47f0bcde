import os
from pathlib import Path

import pytest

from opsieve.errors import BuildFailed
from opsieve.runtimes.source.objects import CompileJob, Compiler
from opsieve.runtimes.source.output.header_record import kept_headers
from opsieve.runtimes.source.output.headers import copy_headers, find_headers


def test_every_header_that_is_read_has_the_name_it_is_included_by(compiler: Compiler, job: CompileJob) -> None:
    found = find_headers(compiler, job, ["toy/all.h"])
    tree = job.include[0]
    assert dict(found.files) == {
        "toy/all.h": tree / "inner/toy/all.h",
        "inner/toy/macro.h": tree / "inner/toy/macro.h",
        "toy/near.h": tree / "inner/toy/near.h",
    }
    assert dict(found.others) == {"toy/macro.h": "inner/toy/macro.h"}


def test_only_macros_that_a_header_mentions(compiler: Compiler, job: CompileJob) -> None:
    assert find_headers(compiler, job, ["toy/all.h"]).macros == ("TOY_BIG",)


def test_copies_are_enough_for_the_compiler(compiler: Compiler, job: CompileJob, tmp_path: Path) -> None:
    copy_headers(find_headers(compiler, job, ["toy/all.h"]), tmp_path / "include")
    alone = CompileJob("x.cpp", job.source, job.flags, (tmp_path / "include",))
    assert len(find_headers(compiler, alone, ["toy/all.h"]).files) == 4


def test_headers_that_the_compiler_takes_for_one_are_all_copied(compiler: Compiler, job: CompileJob) -> None:
    """g++ lists only the first of two headers that have the same text, length and time."""
    inner = job.include[1]
    for name in ("twin_a.h", "twin_b.h"):
        (inner / name).write_text("#pragma once\nint twin();\n")
        os.utime(inner / name, (1, 1))
    (inner / "twins.h").write_text("#include <twin_a.h>\n#include <twin_b.h>\n")
    assert set(find_headers(compiler, job, ["twins.h"]).files) == {"twins.h", "twin_a.h", "twin_b.h"}


def test_a_header_that_is_missing_is_named(compiler: Compiler, job: CompileJob) -> None:
    with pytest.raises(BuildFailed, match=r"nowhere\.h"):
        find_headers(compiler, job, ["nowhere.h"])


def test_one_name_for_two_headers_is_refused(compiler: Compiler, job: CompileJob) -> None:
    """`q/x.h` is first found by the search, then, as another file, beside the header that quotes it."""
    outer, inner = job.include
    for name, text in {"p/x.h": "//1\n", "p/y.h": '#include "x.h"\n'}.items():
        (inner / name).parent.mkdir(exist_ok=True)
        (inner / name).write_text(text)
    (outer / "p").mkdir()
    (outer / "p/x.h").write_text("//2\n")
    (outer / "both.h").write_text("#include <p/x.h>\n#include <p/y.h>\n")
    with pytest.raises(BuildFailed, match=r"two headers.*p/x\.h"):
        find_headers(compiler, job, ["both.h"])


def test_the_record_serves_until_a_header_is_gone(compiler: Compiler, job: CompileJob, tmp_path: Path) -> None:
    record = tmp_path / "headers.json"
    first = kept_headers(compiler, job, ["toy/all.h"], record)
    refusing = CompileJob("x.cpp", job.source, ("-include", "nowhere.h"), job.include)
    assert kept_headers(compiler, refusing, ["toy/all.h"], record) == first
    (job.include[1] / "toy/near.h").unlink()
    with pytest.raises(BuildFailed):
        kept_headers(compiler, refusing, ["toy/all.h"], record)


@pytest.mark.parametrize("damage", [b"", b"{", b'{"asked": 1}'])
def test_a_damaged_record_is_made_anew(compiler: Compiler, job: CompileJob, tmp_path: Path, damage: bytes) -> None:
    record = tmp_path / "headers.json"
    record.write_bytes(damage)
    found = kept_headers(compiler, job, ["toy/all.h"], record)
    assert len(found.files) == 3
    assert record.read_bytes() != damage
