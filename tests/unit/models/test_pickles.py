from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
from collections import OrderedDict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidModel
from opsieve.models import pickles
from opsieve.models.pickles import Call, Global, Pairs, Persistent, read_pickle

ATOMS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS = st.booleans() | st.integers() | st.text()
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.lists(inner).map(tuple),
    max_leaves=20,
)


def plain(value: object) -> object:
    """What read_pickle makes of `value`, in a form that can be compared."""
    if isinstance(value, Pairs):
        return ("pairs", [(plain(key), plain(item)) for key, item in value.items])
    if isinstance(value, dict):
        return ("pairs", [(plain(key), plain(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (type(value).__name__, [plain(item) for item in value])
    return (type(value).__name__, value)


@given(VALUES, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_values_come_back_as_they_were(value: object, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    if protocol < 3 and (b"_codecs" in data or b"__builtin__" in data):  # bytes are made by a call there
        return
    assert plain(read_pickle(data, "x")) == plain(value)


def test_a_set_is_read_as_its_items() -> None:
    assert read_pickle(pickle.dumps({7}, 4), "x") == [7]
    assert read_pickle(pickle.dumps(frozenset((7,)), 4), "x") == [7]


class Harmful:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    data = pickle.dumps(Harmful(tmp_path / "made"), protocol)
    content = read_pickle(data, "x")
    assert isinstance(content, Call)
    assert content.function == Global(os.system.__module__, "system")
    assert content.arguments == ((f"touch {tmp_path / 'made'}",),)
    assert not (tmp_path / "made").exists()


def test_nothing_is_imported() -> None:
    assert read_pickle(b"cno.such.module\nthing\n.", "x") == Global("no.such.module", "thing")


@pytest.mark.parametrize(
    "data",
    [
        b"(cmodule\nname\nI1\no.",
        b"(I1\nimodule\nname\n.",
        b"cmodule\nname\nI1\n\x85\x81.",
        b"cmodule\nname\nI1\n\x85R.",
    ],
    ids=["OBJ", "INST", "NEWOBJ", "REDUCE"],
)
def test_every_way_to_construct_becomes_a_call(data: bytes) -> None:
    content = read_pickle(data, "x")
    assert isinstance(content, Call)
    assert content.function == Global("module", "name")
    assert content.arguments in ((1,), ((1,),))


def test_keyword_construction_keeps_both_arguments() -> None:
    content = read_pickle(b"cmodule\nname\n)}\x92.", "x")
    assert isinstance(content, Call)
    positional, keywords = content.arguments  # type: ignore[misc]
    assert positional == ()
    assert isinstance(keywords, Pairs)


def test_a_state_and_the_items_of_a_mapping_are_kept() -> None:
    built = read_pickle(b"cmodule\nname\n)\x81K\x05b.", "x")
    assert isinstance(built, Call)
    assert built.state == 5
    filled = read_pickle(pickle.dumps(OrderedDict(a=1), 2), "x")
    assert isinstance(filled, Call)
    assert isinstance(filled.state, Pairs)
    assert filled.state.items == [("a", 1)]


def test_storages_are_references() -> None:
    class Pickler(pickle.Pickler):
        def persistent_id(self, obj: object) -> object:
            return ("storage", "0") if isinstance(obj, io.BytesIO) else None

    for protocol in (0, 2):
        stream = io.BytesIO()
        Pickler(stream, protocol).dump(io.BytesIO())
        content = read_pickle(stream.getvalue(), "x")
        assert isinstance(content, Persistent)
        assert content.identity in (("storage", "0"), "('storage', '0')")


def test_a_value_may_contain_itself() -> None:
    cyclic: list[object] = []
    cyclic.append(cyclic)
    content = read_pickle(pickle.dumps(cyclic), "x")
    assert isinstance(content, list)
    assert content[0] is content


def test_shared_tuples_as_keys_take_no_time() -> None:
    """Hashing a tuple nested 200 deep, twice at each level, would take 2**200 steps: this test would never end."""
    nested = b"".join(b"h%ch%c\x86q%c0" % (level, level, level + 1) for level in range(200))
    content = read_pickle(b"\x80\x02)q\x000" + nested + b"}h\xc8K\x01s.", "x")
    assert isinstance(content, Pairs)
    assert len(content.items) == 1


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a well-formed pickle"),
        (b"N", "not a well-formed pickle"),
        (b".", "0 values are left"),
        (b"NN.", "2 values are left"),
        (b"(.", "the stack is empty"),
        (b"t.", "no mark"),
        (b"h\x05.", "memo entry 5"),
        (b"R.", "the stack is empty"),
        (b"(R.", "the stack is empty"),
        (b"NNa.", "items for a NoneType"),
        (b"]NNs.", "keys and values for a list"),
        (b"}(Nu.", "1 keys and values"),
        (b"NNb.", "a state for a NoneType"),
        (b"K\x01K\x02\x93.", "no text"),
        (b"(o.", "without a class"),
        (b"\x82\x01.", "EXT1 has no place"),
        (b"\x97.", "NEXT_BUFFER has no place"),
        (b"\xff.", "not a well-formed pickle"),
        (b"X\xff\xff\xff\x7fabc.", "not a well-formed pickle"),
        (b"\x8d\xff\xff\xff\xff\xff\xff\xff\x7fabc.", "not a well-formed pickle"),
        (b"I" + b"9" * 10_000 + b"\n.", "not a well-formed pickle"),
        (b"X\x01\x00\x00\x00\xff.", "not a well-formed pickle"),
    ],
)
def test_a_malformed_pickle_is_refused_with_place_and_reason(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidModel, match=reason) as caught:
        read_pickle(data, "model.ptl: bytecode.pkl")
    assert str(caught.value).startswith("model.ptl: bytecode.pkl: byte ")


def test_too_many_opcodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MAX_OPCODES", 1000)
    with pytest.raises(InvalidModel, match="more than 1000 opcodes"):
        read_pickle(b"]" * 2000, "x")


def test_too_many_bytes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickles, "MAX_BYTES", 10)
    with pytest.raises(InvalidModel, match="the pickle has 11 bytes"):
        read_pickle(b"x" * 11, "x")


OPCODES = st.sampled_from([code.code.encode("latin-1") for code in pickletools.opcodes])
PIECES = st.one_of(
    OPCODES, st.binary(max_size=6), st.sampled_from([b"\n", b"a\nb\n", b"1\n", b"(", b".", b"]", b"h\0"])
)


@given(st.lists(PIECES, max_size=60).map(b"".join))
def test_any_opcodes_give_a_value_or_one_error(data: bytes) -> None:
    with contextlib.suppress(InvalidModel):
        read_pickle(data, "x")


def test_every_opcode_of_python_is_known_or_refused_on_purpose() -> None:
    handled = {
        *pickles._CONSTANTS,
        *pickles._LITERALS,
        *pickles._PUTS,
        *pickles._GETS,
        *pickles._IGNORED,
        *pickles._ACTIONS,
    }
    unknown = {code.name for code in pickletools.opcodes} - handled
    assert unknown == {"EXT1", "EXT2", "EXT4", "NEXT_BUFFER", "READONLY_BUFFER"}
