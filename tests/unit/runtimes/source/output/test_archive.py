import subprocess
from pathlib import Path

import pytest

from opsieve.errors import BuildFailed, MissingInstallation
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.output import RuntimeParts
from opsieve.runtimes.source.output.archive import run_tool, write_archive


def members(archive: Path) -> list[str]:
    return subprocess.run(["ar", "t", archive], capture_output=True, text=True, check=True).stdout.split()


def test_members_are_named_after_their_sources(parts: RuntimeParts, tmp_path: Path) -> None:
    write_archive(parts.compiler, parts.library_objects, tmp_path / "lib.a")
    assert members(tmp_path / "lib.a") == ["a__three.cpp.o", "b__three.cpp.o"]
    assert (tmp_path / "lib.a").read_bytes().startswith(b"!<arch>\n"), "not a thin archive, which holds only paths"


def test_the_same_objects_give_the_same_bytes(parts: RuntimeParts, tmp_path: Path) -> None:
    for name in ("one.a", "other.a"):
        write_archive(parts.compiler, parts.library_objects, tmp_path / name)
    assert (tmp_path / "one.a").read_bytes() == (tmp_path / "other.a").read_bytes()


def test_names_with_quotes_and_spaces(parts: RuntimeParts, tmp_path: Path) -> None:
    path = parts.objects["a/three.cpp"]
    write_archive(parts.compiler, {'a "b" c.cpp': path}, tmp_path / "lib.a")
    shown = subprocess.run(["ar", "t", tmp_path / "lib.a"], capture_output=True, text=True, check=True).stdout
    assert shown == 'a "b" c.cpp.o\n'


def test_an_object_that_is_gone_is_an_error(compiler: Compiler, tmp_path: Path) -> None:
    with pytest.raises(BuildFailed, match="ar failed"):
        write_archive(compiler, {"a.cpp": tmp_path / "gone.o"}, tmp_path / "lib.a")
    assert list(tmp_path.iterdir()) == []


def test_a_tool_that_is_not_installed(tmp_path: Path) -> None:
    with pytest.raises(MissingInstallation, match="no-such-strip"):
        run_tool(["no-such-strip"], tmp_path, tmp_path)
