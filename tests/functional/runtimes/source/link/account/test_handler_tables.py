"""Tables of handlers that go with their functions: smaller programs that still catch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opsieve.code.elf import ElfFile
from opsieve.runtimes.source.link.handler_tables import tie_handlers
from tests.functional.runtimes.source.link.account.conftest import Builder, Linked
from tests.functional.runtimes.source.link.account.test_marking import marked, split

ROOTS = ("test::conv",)


def tied(builder: Builder, folder: Path, linked: Linked, roots: tuple[str, ...], *flags: str) -> Linked:
    objects = []
    for path in linked.given.objects:
        content = tie_handlers(path)
        objects.append(path if content is None else folder / path.name)
        if content is not None:
            objects[-1].write_bytes(content)
    assert tuple(objects) != linked.given.objects
    return builder.link_objects(linked.linker, tuple(objects), roots, *flags)


def table_size(program: Path) -> int:
    return ElfFile(program, or_program=True).section(".gcc_except_table").size


@pytest.mark.parametrize("flags", [("-no-pie",), ("-fPIC", "-pie")], ids=["fixed", "pie"])
@pytest.mark.parametrize("linker", ["lld", "bfd", "gold"])
def test_programs_catch_as_before(builder: Builder, tmp_path: Path, linker: str, flags: tuple[str, ...]) -> None:
    linked = builder.link("g++", linker, ROOTS, *flags)
    before = table_size(linked.program)
    after = tied(builder, tmp_path, linked, ROOTS, *flags)
    subprocess.run([after.program], check=True)  # conv's kernel throws, and catches
    assert table_size(after.program) < before if linker == "lld" else table_size(after.program) <= before


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_tables_of_dead_functions_are_dead(builder: Builder, tmp_path: Path, compiler: str) -> None:
    linked = tied(builder, tmp_path, builder.link(compiler, "lld", ROOTS, "-no-pie"), ROOTS, "-no-pie")
    graph, live = marked(linked)
    dead, kept = split(graph, live)
    assert not live.unwinding_only.any()
    assert any(name == ".gcc_except_table._Z12dead_guardedi" for _, name in dead)
    assert any(name == ".gcc_except_table._Z7guardedi" for _, name in kept)
    assert not dead - linked.removed


def test_nothing_is_tied_twice(builder: Builder, tmp_path: Path) -> None:
    for path in builder.link("g++", "lld", ROOTS, "-no-pie").given.objects:
        content = tie_handlers(path)
        if content is not None:
            (tmp_path / "tied.o").write_bytes(content)
            assert tie_handlers(tmp_path / "tied.o") is None
            assert len(content) == path.stat().st_size
