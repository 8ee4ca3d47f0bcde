from __future__ import annotations

import contextlib
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidModel
from opsieve.models import ModelNeeds, read_model, tables
from opsieve.models.tables import Buffer, Table

from .files import LITE_FLATBUFFER

MODEL = LITE_FLATBUFFER.read_bytes()
MODULE = Buffer(MODEL, "lite.ff").root()
WEIGHT = MODULE.tables(6)[0].extent(0, 1).start


def table(fields: bytes, offsets: tuple[int, ...], tail: bytes = b"") -> Table:
    """A table with `fields` after its header, whose vtable stands before it."""
    vtable = struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), 4 + len(fields), *offsets)
    return Table(Buffer(vtable + struct.pack("<i", len(vtable)) + fields + tail, "m.ff"), len(vtable))


def test_numbers_and_absent_fields() -> None:
    made = table(struct.pack("<IB", 7, 9), (4, 0, 8))
    assert made.number(0, "<I") == 7
    assert made.number(1, "<I", default=5) == 5
    assert made.number(2, "<B") == 9
    assert made.number(3, "<I", default=6) == 6  # beyond the end of the vtable
    assert made.string(1) == ""
    assert made.table(1) is None
    assert made.tables(1) == []


def test_strings_and_vectors() -> None:
    made = table(struct.pack("<I", 4), (4,), struct.pack("<I", 3) + b"abc")
    assert made.string(0) == "abc"
    assert bytes(made.buffer.data[position] for position in made.vector(0, 1)) == b"abc"


@pytest.mark.parametrize(
    ("fields", "tail", "read"),
    [
        (struct.pack("<I", 4000), b"", Table.string),
        (struct.pack("<I", 4), struct.pack("<I", 4) + b"abc", Table.string),
        (struct.pack("<I", 4), struct.pack("<I", 1 << 31) + b"abc", Table.strings),
        (struct.pack("<I", 0xFFFFFFFF), b"", Table.strings),
    ],
)
def test_offsets_that_lead_outside_are_refused(fields: bytes, tail: bytes, read: object) -> None:
    with pytest.raises(InvalidModel, match="the flatbuffer is broken: "):
        read(table(fields, (4,), tail), 0)  # type: ignore[operator]


def test_a_vtable_outside_of_the_file_is_refused() -> None:
    for distance in (1 << 30, -(1 << 30)):
        made = Table(Buffer(struct.pack("<i", distance), "m.ff"), 0)
        with pytest.raises(InvalidModel, match="outside of the file"):
            made.number(0, "<I")


def test_offsets_to_the_same_data_cannot_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 100
    text = struct.pack("<I", 1000) + b"a" * 1000
    items = b"".join(struct.pack("<I", 4 * (count - number)) for number in range(count))
    made = table(struct.pack("<I", 4), (4,), struct.pack("<I", count) + items + text)
    assert made.strings(0) == ["a" * 1000] * count
    made.buffer.visits_left = 50_000
    with pytest.raises(InvalidModel, match="more often than"):
        made.strings(0)


def changed(tmp_path: Path, content: bytes) -> ModelNeeds:
    path = tmp_path / "m.ff"
    path.write_bytes(content)
    return read_model(path)


def test_the_fingerprint_sees_code_and_weights(tmp_path: Path) -> None:
    original = changed(tmp_path, MODEL)
    assert original.fingerprint.startswith("flatbuffer-sample:")
    assert "no checksums" in original.notes[0]
    seen = {
        changed(tmp_path, MODEL[:at] + bytes([MODEL[at] ^ 1]) + MODEL[at + 1 :]).fingerprint
        for at in (MODEL.index(b"__torch__.Lite"), WEIGHT)
    }
    assert original.fingerprint not in seen
    assert changed(tmp_path, MODEL + b"\0").fingerprint != original.fingerprint


def test_another_version_is_refused(tmp_path: Path) -> None:
    root = struct.unpack_from("<I", MODEL)[0]
    vtable = root - struct.unpack_from("<i", MODEL, root)[0]
    version = root + struct.unpack_from("<H", MODEL, vtable + 4)[0]
    content = bytearray(MODEL)
    struct.pack_into("<I", content, version, 12)
    with pytest.raises(InvalidModel, match="bytecode version 12 is unknown"):
        changed(tmp_path, bytes(content))


@given(
    st.lists(st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 255)), min_size=1, max_size=8),
    st.integers(8, len(MODEL)),
)
def test_mutated_models_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], kept: int
) -> None:
    content = bytearray(MODEL)
    for position, value in changes:
        content[position] = value
    path = tmp_path_factory.getbasetemp() / "mutated.ff"
    path.write_bytes(content[:kept])
    with contextlib.suppress(InvalidModel):
        read_model(path)


def test_the_limit_leaves_room_for_large_models() -> None:
    assert tables.MAX_VISITS > 1_000_000
