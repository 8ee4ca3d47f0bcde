from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

import pytest

from opsieve.errors import OutputExists, SourceUnavailable
from opsieve.runtimes.source import debian_source
from opsieve.runtimes.source.debian_source import get_source, is_release
from opsieve.runtimes.source.tree import SourceTree

from .fake_apt import FakeApt
from .fake_tree import fake_tree

SOURCE_LIST = "deb [signed-by=/keys/archive.gpg] http://mirror.example/debian bookworm main\n"


def archive_of(folder: Path, name: str, version: str) -> Path:
    """A source archive with a fake tree in it."""
    tree = fake_tree(folder / f"tree-{version.strip()}", version=version)
    file = folder / name
    with tarfile.open(file, "w:xz") as tar:
        tar.add(tree, arcname="pytorch-v1")
    return file


def names_in(folder: Path) -> list[str]:
    return [entry.name for entry in folder.iterdir()]


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeApt:
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_CODENAME=bookworm\n")
    monkeypatch.setattr(debian_source, "OS_RELEASE", tmp_path / "os-release")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    apt = FakeApt(tmp_path / "apt", names={"bookworm": ["bookworm", "oldstable"]})
    old = archive_of(tmp_path, "pytorch_1.13.1+dfsg.orig.tar.xz", "1.13.0a0\n")
    new = archive_of(tmp_path, "pytorch_2.6.0+dfsg.orig.tar.xz", "2.6.0a0\n")
    changes = tmp_path / "pytorch_2.6.0+dfsg-7.debian.tar.xz"
    changes.touch()
    apt.add("bookworm", "1.13.1+dfsg-4", old)
    apt.add("oldstable", "1.13.1+dfsg-4", old)
    apt.add("stable", "2.6.0+dfsg-7", changes, new)
    return apt


def test_the_tree_comes_from_the_original_archive(
    apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    got = get_source("2.6.0", tmp_path / "out" / "pytorch")
    assert got.tree == SourceTree(tmp_path / "out" / "pytorch", "2.6.0")
    assert got.package == "pytorch 2.6.0+dfsg-7"
    assert got.downloaded == (tmp_path / "pytorch_2.6.0+dfsg.orig.tar.xz").stat().st_size
    assert names_in(tmp_path / "out") == ["pytorch"]
    assert names_in(tmp_path / "temporary") == []


def test_a_tree_that_says_another_number_than_its_release_is_known_by_the_release(
    apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    assert get_source("v1.13.1", tmp_path / "pytorch").tree.version == "1.13.1"
    assert SourceTree.open(tmp_path / "pytorch").version == "1.13.1"


def test_a_tree_that_is_there_is_left_alone(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    root = fake_tree(tmp_path / "pytorch")
    got = get_source("2.6.0", root)
    assert got.tree.root == root
    assert got.package is None
    assert apt.calls("update") == 0


def test_something_else_in_the_way_is_kept(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    root = fake_tree(tmp_path / "pytorch")
    with pytest.raises(OutputExists, match=r"2\.6\.0 is there already"):
        get_source("1.13.1", root)
    with pytest.raises(OutputExists, match="is not replaced"):
        get_source("1.13.1", root, force=True)
    assert SourceTree.open(root).version == "2.6.0"
    (tmp_path / "file").touch()
    with pytest.raises(OutputExists):
        get_source("1.13.1", tmp_path / "file", force=True)


def test_force_replaces_what_came_from_here(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    target = tmp_path / "pytorch"
    target.mkdir()
    get_source("2.6.0", target, force=True)
    (target / "version.txt").write_text("broken\n")
    get_source("2.6.0", target, force=True)
    assert get_source("1.13.1", target, force=True).tree.version == "1.13.1"


def test_a_suite_of_two_names_is_asked_once(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    get_source("2.6.0", tmp_path / "a")
    assert apt.calls("update") == 2
    with pytest.raises(SourceUnavailable) as caught:
        get_source("2.5.0", tmp_path / "b")
    assert "1.13.1+dfsg-4 (bookworm), 2.6.0+dfsg-7 (stable)" in str(caught.value)
    assert "git clone" in str(caught.value)
    assert "v2.5.0" in str(caught.value)


def test_without_apt_it_says_how_to_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SourceUnavailable, match="no apt") as caught:
        get_source("2.6.0", tmp_path / "pytorch")
    assert f"--branch v2.6.0 https://github.com/pytorch/pytorch {tmp_path / 'pytorch'}" in str(caught.value)


@pytest.mark.parametrize("text", ["", "deb http://packages.example/tool stable-tool main\n"])
def test_source_lists_without_an_archive_of_the_distribution(
    apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    apt.install(monkeypatch, text)
    with pytest.raises(SourceUnavailable, match="name no archive"):
        get_source("2.6.0", tmp_path / "pytorch")


def test_what_apt_says_is_passed_on(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.trouble = "Could not resolve 'mirror.example'"
    apt.install(monkeypatch, SOURCE_LIST)
    with pytest.raises(SourceUnavailable, match=r"Could not resolve 'mirror\.example'"):
        get_source("2.6.0", tmp_path / "pytorch")


def test_an_archive_that_is_not_as_signed_leaves_nothing(
    apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apt.add("stable", "2.6.0+dfsg-7", tmp_path / "pytorch_2.6.0+dfsg.orig.tar.xz", sha256="0" * 64)
    apt.install(monkeypatch, SOURCE_LIST)
    with pytest.raises(SourceUnavailable, match="not what the signed index describes"):
        get_source("2.6.0", tmp_path / "out" / "pytorch")
    assert not (tmp_path / "out").exists()
    assert names_in(tmp_path / "temporary") == []


def test_an_archive_that_is_gone(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    (tmp_path / "pytorch_2.6.0+dfsg.orig.tar.xz").unlink()
    with pytest.raises(SourceUnavailable, match="cannot be downloaded: 404"):
        get_source("2.6.0", tmp_path / "pytorch")


def test_an_archive_of_another_version_leaves_nothing(
    apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = archive_of(tmp_path, "pytorch_2.5.0.orig.tar.xz", "1.12.0a0\n")
    apt.add("stable", "2.5.0-1", wrong)
    apt.install(monkeypatch, SOURCE_LIST)
    with pytest.raises(SourceUnavailable, match=r"holds PyTorch 1\.12\.0"):
        get_source("2.5.0", tmp_path / "out" / "pytorch")
    assert names_in(tmp_path / "out") == []


def test_a_folder_that_cannot_be_written(apt: FakeApt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    apt.install(monkeypatch, SOURCE_LIST)
    (tmp_path / "file").touch()
    with pytest.raises(SourceUnavailable, match="cannot be written"):
        get_source("2.6.0", tmp_path / "file" / "pytorch")


@pytest.mark.parametrize("version", ["2.6", "main", "2.6.0; rm", "", "2.6.0a0"])
def test_versions_that_are_no_release(tmp_path: Path, version: str) -> None:
    with pytest.raises(SourceUnavailable, match="no release"):
        get_source(version, tmp_path / "pytorch")


@pytest.mark.parametrize(
    ("package", "answer"),
    [
        ("2.6.0+dfsg-7", True),
        ("1:2.6.0-1ubuntu2", True),
        ("2.6.0+dfsg1-7", True),
        ("2.6.0", True),
        ("2.6.0~rc1-1", False),
        ("12.6.0-1", False),
        ("2.6.01-1", False),
        ("2.6.0.1-1", False),
        ("2x6.0-1", False),
    ],
)
def test_package_versions_name_releases(package: str, answer: bool) -> None:
    assert is_release(package, "2.6.0") is answer
