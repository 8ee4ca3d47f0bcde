from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from opsieve.errors import InvalidFile
from opsieve.runtimes.source import unpack as module
from opsieve.runtimes.source.unpack import unpack


def archive(folder: Path, *members: tuple[str, bytes | None, dict[str, object]]) -> Path:
    """A tar.xz of members: name, contents (None for a folder), other attributes."""
    file = folder / "a.tar.xz"
    with tarfile.open(file, "w:xz") as tar:
        for name, contents, attributes in members:
            member = tarfile.TarInfo(name)
            member.type, member.mode = (tarfile.DIRTYPE, 0o755) if contents is None else (tarfile.REGTYPE, 0o644)
            member.size = len(contents or b"")
            for key, value in attributes.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(contents or b""))
    return file


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "deep" / "out"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(params=[True, False], ids=["filters", "python-without-filters"])
def _filters(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param and hasattr(tarfile, "data_filter"):
        monkeypatch.delattr(tarfile, "data_filter")


@pytest.mark.usefixtures("_filters")
def test_files_and_folders_are_unpacked_without_links(tmp_path: Path, out: Path) -> None:
    link = {"type": tarfile.SYMTYPE, "linkname": "../../.."}
    device = {"type": tarfile.CHRTYPE}
    file = archive(
        tmp_path, ("top", None, {}), ("top/f", b"text", {}), ("top/link", b"", link), ("top/null", b"", device)
    )
    assert unpack(file, out) == out / "top"
    assert [entry.name for entry in (out / "top").iterdir()] == ["f"]
    assert (out / "top" / "f").read_text() == "text"


@pytest.mark.usefixtures("_filters")
@pytest.mark.parametrize("name", ["../evil", "top/../../evil", "/tmp/evil-of-opsieve"])
def test_names_that_lead_out_are_refused(tmp_path: Path, out: Path, name: str) -> None:
    with pytest.raises(InvalidFile, match="outside its folder"):
        unpack(archive(tmp_path, (name, b"x", {})), out)
    assert not list(tmp_path.rglob("*evil*"))


def test_nothing_is_written_through_a_link(tmp_path: Path, out: Path) -> None:
    link = {"type": tarfile.SYMTYPE, "linkname": str(tmp_path)}
    unpack(archive(tmp_path, ("top/l", b"", link), ("top/l/evil", b"x", {})), out)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("limit", ["MAX_MEMBERS", "MAX_BYTES"])
def test_more_than_the_limits_is_refused(
    tmp_path: Path, out: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(module, limit, 1)
    with pytest.raises(InvalidFile, match="too large"):
        unpack(archive(tmp_path, ("top/a", b"xx", {}), ("top/b", b"", {})), out)


def test_broken_archives_are_refused(tmp_path: Path, out: Path) -> None:
    whole = archive(tmp_path, ("top/a", bytes(range(256)) * 999, {})).read_bytes()
    for number, contents in enumerate([b"", b"no archive", whole[: len(whole) // 2], whole[:200] + whole[204:]]):
        (tmp_path / "broken").write_bytes(contents)
        folder = out / str(number)
        folder.mkdir()
        with pytest.raises(InvalidFile):
            unpack(tmp_path / "broken", folder)


def test_an_archive_must_hold_one_folder(tmp_path: Path, out: Path) -> None:
    with pytest.raises(InvalidFile, match="no single folder"):
        unpack(archive(tmp_path, ("a/x", b"", {}), ("b/x", b"", {})), out)
    (out / "more").mkdir()
    with pytest.raises(InvalidFile, match="no single folder"):
        unpack(archive(tmp_path, ("file", b"", {})), out / "more")
