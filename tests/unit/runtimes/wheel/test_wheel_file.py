import csv
import hashlib
import io
import os
import zipfile
from base64 import urlsafe_b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import MissingInstallation
from opsieve.runtimes.wheel.wheel_file import (
    RecordEntry,
    pack,
    packing_order,
    record_entry,
    record_text,
    wheel_name,
)


def test_record_entry_hashes_the_file(tmp_path):
    (tmp_path / "a").write_bytes(b"slim")
    entry = record_entry(tmp_path, "a")
    assert entry.size == 4
    encoded = entry.digest.removeprefix("sha256=")
    assert "=" not in encoded
    assert urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)) == hashlib.sha256(b"slim").digest()


@given(st.sets(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1)))
def test_record_reads_back_whatever_the_names(paths):
    entries = [RecordEntry(path, "sha256=x", len(path)) for path in paths]
    lines = list(csv.reader(io.StringIO(record_text(entries, "d/RECORD"), newline="")))
    assert lines[-1] == ["d/RECORD", "", ""]
    assert sorted(lines[:-1]) == sorted([e.path, e.digest, str(e.size)] for e in entries)


def test_wheel_name_compresses_several_tags():
    one = "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_28_x86_64\n"
    assert wheel_name("2.0+cpu.x", one) == "torch-2.0+cpu.x-cp311-cp311-manylinux_2_28_x86_64.whl"
    two = "Tag: cp311-cp311-manylinux_2_17_x86_64\nTag: cp311-cp311-manylinux2014_x86_64\n"
    assert wheel_name("2", two) == "torch-2-cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"


@pytest.mark.parametrize("text", ["", "Tag: cp311\n"])
def test_wheel_without_tags_is_refused(text):
    with pytest.raises(MissingInstallation, match="tag"):
        wheel_name("2", text)


def test_the_zip_depends_on_content_only(tmp_path):
    for name, time in (("one", 1_000_000_000), ("two", 1_700_000_000)):
        (tmp_path / name).mkdir()
        for path, mode in (("a", 0o600), ("b", 0o744)):
            (tmp_path / name / path).write_bytes(path.encode() * 1000)
            (tmp_path / name / path).chmod(mode)
            os.utime(tmp_path / name / path, (time, time))
    (tmp_path / "two/a").chmod(0o664)
    for name in ("one", "two"):
        pack(tmp_path / name, ["a", "b"], tmp_path / f"{name}.whl", lambda amount: None)
    assert (tmp_path / "one.whl").read_bytes() == (tmp_path / "two.whl").read_bytes()
    with zipfile.ZipFile(tmp_path / "one.whl") as archive:
        modes = [member.external_attr >> 16 & 0o777 for member in archive.infolist()]
        assert [archive.read(name) for name in archive.namelist()] == [b"a" * 1000, b"b" * 1000]
    assert modes == [0o644, 0o755]


def test_advance_gets_every_byte(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "full").write_bytes(b"x" * 12345)
    amounts = []
    pack(tmp_path, ["empty", "full"], tmp_path / "x.whl", amounts.append)
    assert sum(amounts) == 12345


def test_metadata_comes_last_and_record_at_the_end():
    paths = ["torch-1.dist-info/RECORD", "torch-1.dist-info/WHEEL", "torchgen/a", "torch/a"]
    assert packing_order(paths, "torch-1.dist-info") == [
        "torch/a",
        "torchgen/a",
        "torch-1.dist-info/WHEEL",
        "torch-1.dist-info/RECORD",
    ]
