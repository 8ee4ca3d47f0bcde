"""Whatever happens to headers, flags and folders: the store gives what the compiler would make now."""

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from .project import Project, needs_compiler

FOLDERS = ["first", "second", "src"]
FILES = [f"{folder}/{name}" for folder in (*FOLDERS, "first/sub", "second/sub") for name in ("a.h", "b.h")]
LINES = [
    "#include <a.h>",
    '#include "b.h"',
    "#include <sub/a.h>",
    '#include "sub/b.h"',
    "#include_next <a.h>",
    "#include SOME",
    "#if __has_include(<sub/b.h>)\nint some;\n#endif",
]

lines = st.lists(st.sampled_from(LINES), max_size=2)
writes = st.tuples(st.sampled_from(FILES), lines)
changes = st.one_of(
    writes,
    st.tuples(st.just("source"), lines),
    st.tuples(st.just("remove"), st.sampled_from(FILES)),
    st.tuples(st.just("include"), st.permutations(FOLDERS)),
    st.tuples(st.just("flags"), st.sampled_from(["-DSOME=<b.h>", "-DSOME=<sub/a.h>"])),
)


def _header(name: str, includes: list[str]) -> str:
    """A header that shows in the object that this very file was read."""
    word = name.replace("/", "_").replace(".", "_")
    return "\n".join((f"#ifndef {word}", f"#define {word}", *includes, f"int in_{word};", "#endif\n"))


def _change(project: Project, what: str, how: list[str] | str) -> None:
    if what == "source":
        project.write("src/main.c", "\n".join(("#include <a.h>", '#include "b.h"', *how, "int end;\n")))
    elif what == "remove":
        (project.root / str(how)).unlink(missing_ok=True)
    elif what == "include":
        project.include = tuple(how)
    elif what == "flags":
        project.flags = (str(how),)
    else:
        project.write(what, _header(what, list(how)))


def _object(project: Project) -> bytes | None:
    """None if it does not compile."""
    objects = project.build("src/main.c").objects
    return objects["src/main.c"].read_bytes() if objects else None


@needs_compiler
@settings(max_examples=5)
@given(st.lists(writes, min_size=4, max_size=8), st.lists(changes, min_size=1, max_size=4))
def test_the_store_gives_what_the_compiler_makes(start, changes):
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), flags=("-DSOME=<b.h>",), include=("first", "second"))
        for what, how in [("source", []), ("first/a.h", []), ("second/b.h", []), *start]:
            _change(project, what, how)
        for what, how in [("include", ["first", "second"]), *changes]:
            _change(project, what, how)
            kept = _object(project)
            assert kept == _object(replace(project, store_name="fresh"))
            shutil.rmtree(project.root / "fresh")
