from __future__ import annotations

import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from opsieve.errors import OutputExists
from opsieve.files import refuse_existing, replacing_file, replacing_folder

Replacing = Callable[..., AbstractContextManager[Path]]


def fill(path: Path, text: str) -> None:
    """Put `text` where the context gave a file or a folder."""
    (path / "inside" if path.is_dir() else path).write_text(text)


def text_of(path: Path) -> str:
    return (path / "inside" if path.is_dir() else path).read_text()


def entries(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


def fill_and_fail(path: Path) -> None:
    fill(path, "half")
    raise ValueError


BOTH = pytest.mark.parametrize("replacing", [replacing_file, replacing_folder])


@BOTH
def test_a_new_result_appears_when_it_is_complete(tmp_path: Path, replacing: Replacing) -> None:
    target = tmp_path / "deep" / "target"
    with replacing(target) as temporary:
        fill(temporary, "new")
        assert not target.exists()
    assert text_of(target) == "new"
    assert entries(target.parent) == ["target"]


@BOTH
def test_nothing_is_overwritten_without_force(tmp_path: Path, replacing: Replacing) -> None:
    target = tmp_path / "target"
    with replacing(target) as temporary:
        fill(temporary, "old")
    with pytest.raises(OutputExists, match="exists already") as caught, replacing(target):
        pytest.fail("the body must not run")
    assert "--force" in str(caught.value.remedy)
    with replacing(target, force=True) as temporary:
        fill(temporary, "new")
    assert text_of(target) == "new"
    assert entries(tmp_path) == ["target"]


@BOTH
def test_a_failure_leaves_the_old_result_and_nothing_else(tmp_path: Path, replacing: Replacing) -> None:
    target = tmp_path / "target"
    with replacing(target) as temporary:
        fill(temporary, "old")
    with pytest.raises(ValueError), replacing(target, force=True) as temporary:
        fill_and_fail(temporary)
    assert text_of(target) == "old"
    assert entries(tmp_path) == ["target"]


@BOTH
def test_others_may_read_the_result_as_the_umask_says(tmp_path: Path, replacing: Replacing) -> None:
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "target") as temporary:
            fill(temporary, "x")
    finally:
        os.umask(before)
    mode = stat.S_IMODE((tmp_path / "target").stat().st_mode)
    assert mode == (0o750 if (tmp_path / "target").is_dir() else 0o640)


def test_a_broken_link_counts_as_existing(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputExists):
        refuse_existing(tmp_path / "link", force=False)
    refuse_existing(tmp_path / "link", force=True)
