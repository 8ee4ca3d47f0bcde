"""What is compiled again, and what is not."""

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.runtimes.source.objects import Compiler, compile_all
from opsieve.runtimes.source.objects.compiler import search_path
from opsieve.runtimes.source.objects.manifest import read_entries

from .project import Project, needs_compiler

pytestmark = needs_compiler


def test_nothing_is_compiled_twice(project: Project) -> None:
    project.write("src/other.cpp", "int other() { return 1; }\n")
    first = project.build("src/main.cpp", "src/other.cpp")
    again = project.build("src/main.cpp", "src/other.cpp")
    assert project.compiles == 2
    assert (first.reused, again.reused) == (0, 2)
    assert dict(again.require()) == dict(first.require())


def test_a_changed_time_alone_is_no_change(project: Project) -> None:
    project.build()
    for path in project.root.rglob("*.h"):
        os.utime(path, (1, 1))
    project.build()
    assert project.compiles == 1


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ("first/one.h", "#define ONE 7\n"),
        ("first/one.h", "#define ONE 1 \n"),
        ("second/two.h", "#include <one.h>\n#define TWO 7\n"),
        ("src/near.h", "#define NEAR 7\n"),
        ("src/main.cpp", "int sum() { return 7; }\n"),
    ],
)
def test_any_byte_that_was_read_counts(project: Project, changed: str, text: str) -> None:
    project.build()
    project.write(changed, text)
    project.build()
    assert project.compiles == 2


def test_a_header_that_was_not_read_does_not_count(project: Project) -> None:
    project.write("first/unread.h", "1\n")
    project.build()
    project.write("first/unread.h", "2\n")
    project.write("first/new.h", "3\n")
    project.build()
    assert project.compiles == 1


def test_what_was_compiled_before_a_change_is_there_when_it_is_taken_back(project: Project) -> None:
    before = project.built()
    project.write("first/one.h", "#define ONE 7\n")
    assert project.built() != before
    project.write("first/one.h", "#define ONE 1\n")
    assert project.built() == before
    assert project.compiles == 2


def test_flags_count(project: Project) -> None:
    project.build()
    project.flags = ("-O1", "-DMORE")
    project.build()
    assert project.compiles == 2


def test_the_content_of_a_file_that_a_flag_names_counts(project: Project) -> None:
    options = project.write("options", "-DEXTRA=1")
    project.write("src/main.cpp", "int extra() { return EXTRA; }\n")
    project.flags = (f"@{options}",)
    before = project.built()
    project.write("options", "-DEXTRA=2")
    assert project.built() != before


def test_the_order_of_include_folders_counts(project: Project) -> None:
    project.write("second/one.h", "#define ONE 7\n")
    before = project.built()
    project.include = ("second", "first")
    assert project.built() != before


@pytest.mark.parametrize("hiding", ["first/two.h", "src/two.h"])
def test_a_header_that_newly_hides_another_counts(project: Project, hiding: str) -> None:
    project.write("src/main.cpp", '#include "two.h"\nint two() { return TWO; }\n')
    before = project.built()
    project.write(hiding, "#define TWO 7\n")
    assert project.built() != before


def test_a_new_header_where_nobody_looks_first_does_not_count(project: Project) -> None:
    project.build()
    project.write("second/one.h", "#define ONE 7\n")
    project.write("first/near.h", "#define NEAR 7\n")
    project.build()
    assert project.compiles == 1


def test_a_hiding_header_with_the_same_text_changes_what_its_includes_mean(project: Project) -> None:
    """`second/sub/a.h` and `first/sub/a.h` are equal, but the quoted include in them leads to different files."""
    project.write("second/sub/a.h", '#include "b.h"\n')
    project.write("second/sub/b.h", "#define B 1\n")
    project.write("src/main.cpp", "#include <sub/a.h>\nint b() { return B; }\n")
    before = project.built()
    project.write("first/sub/b.h", "#define B 7\n")
    assert project.built() == before
    project.write("first/sub/a.h", '#include "b.h"\n')
    assert project.built() != before


def test_a_header_that_was_asked_for_in_vain_counts(project: Project) -> None:
    project.write(
        "src/main.cpp", "#if __has_include(<maybe.h>)\nint f() { return 1; }\n#endif\nint g() { return 2; }\n"
    )
    before = project.built()
    project.write("second/maybe.h", "")
    assert project.built() != before


def test_include_next_counts(project: Project) -> None:
    project.include = ("first", "second", "third")
    project.write("first/x.h", "#include_next <x.h>\n")
    project.write("third/x.h", "#define X 1\n")
    project.write("src/main.cpp", "#include <x.h>\nint x() { return X; }\n")
    before = project.built()
    project.write("second/x.h", "#define X 7\n")
    assert project.built() != before


@pytest.mark.parametrize("hiding", ["first/sub/x.h", "src/sub/x.h"])
def test_an_include_that_a_macro_computes_counts(project: Project, hiding: str) -> None:
    project.flags = ('-DHEADER="sub/x.h"',)
    project.write("second/sub/x.h", "#define X 1\n")
    project.write("src/main.cpp", "#include HEADER\nint x() { return X; }\n")
    before = project.built()
    assert project.built() == before
    assert project.compiles == 1
    project.write(hiding, "#define X 7\n")
    assert project.built() != before


def test_a_header_that_a_flag_includes_counts(project: Project) -> None:
    project.flags = ("-include", "forced.h")
    project.write("second/forced.h", "#define FORCED 1\n")
    project.write("src/main.cpp", "int forced() { return FORCED; }\n")
    before = project.built()
    project.write("first/forced.h", "#define FORCED 7\n")
    hidden = project.built()
    project.write("first/forced.h", "#define FORCED 8\n")
    assert len({before, hidden, project.built()}) == 3


def test_a_system_folder_that_the_compiler_spells_in_its_own_way(project: Project) -> None:
    """g++ writes the short form of such a path into the dependency file."""
    folder = project.root / "second"
    project.flags = ("-isystem", f"{folder}/long/../../second")
    project.include = ("first",)
    project.write("second/long/unread.h", "")
    project.build()
    entries = [read_entries(path) for path in (project.root / "store" / "manifests").glob("*/*")]
    assert f"{folder.resolve()}/two.h" in entries[0][0].states
    assert not any("two.h" in key for key in entries[0][0].suspicions)
    before = project.built()
    assert project.compiles == 1
    project.write("second/two.h", "#include <one.h>\n#define TWO 7\n")
    assert project.built() != before


def test_two_checkouts_share_objects_and_no_path_is_in_them(project: Project, tmp_path: Path) -> None:
    project.flags = ("-O1", "-g")
    project.write("first/one.h", "#define ONE 1\ninline const char* here() { return __FILE__; }\n")
    source = (
        '#include <two.h>\n#include "near.h"\nconst char* where() { return here(); }\nconst char* self = __FILE__;\n'
    )
    project.write("src/main.cpp", f"{source}namespace {{ struct Once {{ Once() {{ where(); }} }} once; }}\n")
    mine = project.built()
    other = replace(project, root=tmp_path / "elsewhere", counting=None)
    for folder in ("first", "second", "src"):
        shutil.copytree(project.root / folder, other.root / folder)
    shutil.rmtree(project.root / "src")
    other_apart = other.built()
    assert other_apart == mine
    assert str(tmp_path).encode() not in mine
    assert b"src/main.cpp" in mine
    other.log.unlink()
    (other.root / "store").rename(other.root / "unused")
    (other.root / "store").symlink_to(project.root / "store")
    assert other.built() == mine
    assert other.compiles == 0


def test_the_folder_of_the_source_counts(project: Project) -> None:
    """The same text by the same name, but the quoted include in it leads elsewhere."""
    for folder, near in (("x", 1), ("y", 7)):
        project.write(f"first/{folder}/main.cpp", '#include "near.h"\nint near() { return NEAR; }\n')
        project.write(f"first/{folder}/near.h", f"#define NEAR {near}\n")
    jobs = [replace(project.job(f"first/{folder}/main.cpp"), name="main.cpp") for folder in "xy"]
    objects = []
    for job in jobs:
        with project.store() as store:
            objects.append(compile_all([job], store, Compiler.find("g++")).require()["main.cpp"].read_bytes())
    assert objects[0] != objects[1]


def test_compiling_twice_gives_the_same_bytes(project: Project) -> None:
    """With -flto g++ names sections at random unless it is given a seed."""
    project.flags = ("-O1", "-flto")
    assert project.built() == replace(project, store_name="other").built()


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_the_machine_counts_when_the_code_is_for_this_machine_only(project: Project, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    compiler = Compiler.find(name)
    assert not search_path(compiler, project.job()).machine
    project.flags = ("-march=native",)
    machine = search_path(compiler, project.job()).machine
    assert "-march=" in machine or "-target-cpu" in machine
    assert "native" not in machine


def test_c_is_compiled_as_c(project: Project) -> None:
    project.flags = ("-std=gnu++17", "-fvisibility-inlines-hidden", "-Werror")
    project.write("src/plain.c", "int class(void) { int new = 1; return new; }\n")
    assert b"class" in project.built("src/plain.c")


@pytest.mark.parametrize(("name", "text"), [("src/a.s", ".globl a\na:\n"), ("src/a.S", "#define A a\n.globl A\nA:\n")])
def test_assembler(project: Project, name: str, text: str) -> None:
    project.write(name, text)
    assert project.built(name) == project.built(name)
    assert project.compiles == 1


def test_a_damaged_store_is_mended(project: Project) -> None:
    compiled = project.build()
    path = compiled.require()["src/main.cpp"]
    whole = path.read_bytes()
    path.write_bytes(whole[:10])
    assert project.built() == whole
    for manifest in (project.root / "store" / "manifests").glob("*/*"):
        manifest.write_bytes(b"\xc1 nothing")
    (project.root / "store" / "costs.jsonl").write_bytes(b'{"name": 1}\n\xff\n')
    assert project.built() == whole
    assert project.compiles == 3
