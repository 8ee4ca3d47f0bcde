from __future__ import annotations

import os
import struct
import zipfile
from pathlib import Path

import pytest

from opsieve.errors import InvalidModel
from opsieve.models import archive as archives
from opsieve.models.archive import open_archive

from .files import EVERYTHING, script_members, unzipped, write, zipped


def opened(path: Path) -> tuple[str, ...]:
    with open_archive(path) as archive:
        return archive.names


def test_members_are_named_without_the_top_folder(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", {"code/a.py": "x", "version": "3"}, top="some name/")
    with open_archive(path) as archive:
        assert archive.names == ("code/a.py", "version")
        assert archive.read("code/a.py") == b"x"
        assert archive.file_version() == 3


def test_an_archive_without_a_top_folder_keeps_its_names(tmp_path: Path) -> None:
    assert opened(write(tmp_path / "m", {"version": "1", "extra/x": "y"}, top="")) == ("version", "extra/x")


def test_the_new_place_of_the_version_wins(tmp_path: Path) -> None:
    path = write(tmp_path / "m", {"version": "3", ".data/version": "10\n"})
    with open_archive(path) as archive:
        assert archive.file_version() == 10


@pytest.mark.parametrize("content", [b"", b"ten", b"-1", b"9" * 30])
def test_a_version_that_is_no_number_is_no_version(tmp_path: Path, content: bytes) -> None:
    with open_archive(write(tmp_path / "m", {"version": content})) as archive:
        assert archive.file_version() is None


@pytest.mark.parametrize("kept", [0, 1, 30, 1000, 4000])
def test_a_truncated_archive_is_refused(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "cut.pt"
    path.write_bytes(EVERYTHING.read_bytes()[:kept])
    with pytest.raises(InvalidModel, match="broken or cut off") as caught:
        opened(path)
    assert str(path) in str(caught.value)


def test_a_directory_of_false_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_DIRECTORY_BYTES", 2000)
    path = write(tmp_path / "m", {f"m{number:04}": "" for number in range(100)})
    with pytest.raises(InvalidModel, match="directory claims"):
        opened(path)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 3)
    with pytest.raises(InvalidModel, match="4 members"):
        opened(write(tmp_path / "m", dict.fromkeys("abcd", "")))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "..\\x", "C:/x", "a/\0../b"])
def test_names_that_lead_outside_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "m"
    placeholder = "n" * len(name)  # zipfile would clean the name itself
    path.write_bytes(zipped({placeholder: "x"}, top="").replace(placeholder.encode(), name.encode()))
    with pytest.raises(InvalidModel, match="outside of the archive"):
        opened(path)


def test_two_members_of_one_name_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(zipped({"code/a.py": "x", "code/b.py": "y"}).replace(b"code/b.py", b"code/a.py"))
    with pytest.raises(InvalidModel, match="two members") as caught:
        opened(path)
    assert "code/a.py" in str(caught.value)


def test_a_damaged_member_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_bytes(zipped({"code/a.py": "good text"}).replace(b"good text", b"evil text"))
    with open_archive(path) as archive, pytest.raises(InvalidModel, match="damaged") as caught:
        archive.read("code/a.py")
    assert caught.value.where == f"{path}: code/a.py"


def test_an_encrypted_member_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped({"code/a.py": "x"}))
    entry = content.index(b"PK\x01\x02")
    content[entry + 8] |= 1
    (tmp_path / "m").write_bytes(content)
    with open_archive(tmp_path / "m") as archive, pytest.raises(InvalidModel, match="encrypted"):
        archive.read("code/a.py")


def test_a_newer_version_of_zip_is_refused(tmp_path: Path) -> None:
    content = bytearray(zipped({"code/a.py": "x"}))
    content[content.index(b"PK\x01\x02") + 6] = 99
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InvalidModel, match=r"zip file version 9\.9"):
        opened(tmp_path / "m")


def test_an_unknown_compression_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m", "w", zipfile.ZIP_BZIP2) as made:
        made.writestr("top/a", "x" * 100)
    with open_archive(tmp_path / "m") as archive, pytest.raises(InvalidModel, match="compressed in a way"):
        archive.read("a")


def bomb(path: Path, size: int) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made, made.open("top/a", "w") as member:
        for _ in range(size >> 20):
            member.write(bytes(1 << 20))
    return path


def test_a_member_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = bomb(tmp_path / "m", archives.MAX_READ_BYTES + (1 << 20))
    with open_archive(path) as archive, pytest.raises(InvalidModel, match="more than the limit"):
        archive.read("a")


def test_the_limit_counts_all_members_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_READ_BYTES", 10)
    with open_archive(write(tmp_path / "m", {"a": "123456", "b": "123456"})) as archive:
        archive.read("a")
        with pytest.raises(InvalidModel, match="more than the limit"):
            archive.read("b")


def test_a_member_that_holds_more_than_it_says_is_refused(tmp_path: Path) -> None:
    content = bytearray(bomb(tmp_path / "m", 1 << 20).read_bytes())
    entry = content.index(b"PK\x01\x02")
    struct.pack_into("<I", content, entry + 24, 100)
    (tmp_path / "m").write_bytes(content)
    with open_archive(tmp_path / "m") as archive, pytest.raises(InvalidModel, match="damaged"):
        archive.read("a")


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    with open_archive(write(tmp_path / "m", {"a": b"ab\xff"})) as archive, pytest.raises(InvalidModel, match="byte 2"):
        archive.read_text("a")


def test_a_missing_member_is_refused(tmp_path: Path) -> None:
    with open_archive(write(tmp_path / "m", {"a": ""})) as archive, pytest.raises(InvalidModel, match="no such member"):
        archive.read("b")


def fingerprint(path: Path) -> str:
    with open_archive(path) as archive:
        return archive.fingerprint()


def test_the_fingerprint_follows_the_weights_and_not_the_name_of_the_file(tmp_path: Path) -> None:
    members = {**script_members(), "data/0": b"\0" * 64}
    one = fingerprint(write(tmp_path / "a", members, top="a/"))
    assert one == fingerprint(write(tmp_path / "b", dict(reversed(members.items())), top="b/"))
    assert one != fingerprint(write(tmp_path / "c", {**members, "data/0": b"\0" * 63 + b"\1"}, top="a/"))
    assert one != fingerprint(write(tmp_path / "d", {**members, "data/1": b""}, top="a/"))


def test_the_fingerprint_reads_no_member(tmp_path: Path) -> None:
    members = unzipped(EVERYTHING)
    path = write(tmp_path / "m", members)
    before = fingerprint(path)
    content = path.read_bytes()
    for data in members.values():
        if len(data) > 8:
            content = content.replace(data, bytes(len(data)))
    path.write_bytes(content)
    assert fingerprint(path) == before


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InvalidModel, match="not a regular file"):
        opened(tmp_path / "pipe")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidModel, match="No such file"):
        opened(tmp_path / "nothing")
