from __future__ import annotations

from pathlib import Path

import pytest

from opsieve.errors import InvalidSourceTree
from opsieve.runtimes.source import build_lists
from opsieve.runtimes.source.build_lists import BuildLists, read_build_lists


def lists_of(tmp_path: Path, text: str) -> BuildLists:
    file = tmp_path / "build_variables.bzl"
    file.write_text(text)
    return read_build_lists(file)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = ['b', 'a']", ("b", "a")),
        ("x = sorted(['b', 'a'])", ("a", "b")),
        ("y = ['a']\nx = y + ['b'] + y", ("a", "b", "a")),
        ("x = ['a']\nx += ['b']", ("a", "b")),
        ("x = ['a']\nx = x + ['b']", ("a", "b")),
        ("y = ['a']\nx = ['src/' + n + '.cpp' for n in y]", ("src/a.cpp",)),
        ("p = 'src/'\nx = [p + 'a', 'b' 'c']", ("src/a", "bc")),
        ("x = ('a', 'b')", ("a", "b")),
        ("def f(y):\n    return y\nload = f('z')\nx = ['a']", ("a",)),
        ("x = f()\nx = ['now', 'known']", ("now", "known")),
        ("y = 1", ()),
    ],
)
def test_lists_are_put_together_as_python_would(tmp_path: Path, text: str, value: tuple[str, ...]) -> None:
    assert lists_of(tmp_path, text).get("x") == value


@pytest.mark.parametrize(
    "expression",
    [
        "f()",
        "[1]",
        "['a'] * 9",
        "['a'] + 'b'",
        "[unknown]",
        "sorted(['a'], reverse=True)",
        "[c for c in 'text']",
        "[n for n in ['a'] if n]",
        "[['a']]",
        "'a'.upper()",
        "f'a'",
        "__import__('os')",
    ],
)
def test_what_is_not_understood_is_named_with_its_line(tmp_path: Path, expression: str) -> None:
    lists = lists_of(tmp_path, f"y = ['fine']\nx = {expression}")
    assert lists.get("y") == ("fine",)
    with pytest.raises(InvalidSourceTree, match="x cannot be read as data") as caught:
        lists.get("x")
    assert "line 2" in str(caught.value)


def test_what_builds_on_something_not_understood_is_not_understood_either(tmp_path: Path) -> None:
    with pytest.raises(InvalidSourceTree):
        lists_of(tmp_path, "y = f()\nx = y + ['a']").get("x")


def test_nothing_of_the_file_runs(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    lists_of(tmp_path, f"open({str(witness)!r}, 'w')\nx = [open({str(witness)!r}, 'w')]")
    assert not witness.exists()


def test_lists_and_strings_that_double_stop_growing(tmp_path: Path) -> None:
    for start in ("['a']", "'a'"):
        lists = lists_of(tmp_path, f"x = {start}\n" + "x = x + x\n" * 100)
        with pytest.raises(InvalidSourceTree):
            lists.get("x")


@pytest.mark.parametrize("text", ["x = [", "\0", "x = " + "(" * 5000 + ")" * 5000])
def test_text_that_is_no_python_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidSourceTree, match="cannot be read"):
        lists_of(tmp_path, text)


def test_deep_sums_do_not_overflow(tmp_path: Path) -> None:
    with pytest.raises(InvalidSourceTree):
        lists_of(tmp_path, "x = ['a']" + " + ['a']" * 2000).get("x")


def test_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_lists, "MAX_BYTES", 10)
    with pytest.raises(InvalidSourceTree, match="too large"):
        lists_of(tmp_path, "x = ['a', 'b']")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidSourceTree, match="cannot be read"):
        read_build_lists(tmp_path / "build_variables.bzl")
