"""Real model files, damaged in every way: each gives a ModelNeeds or one InvalidModel, and nothing else."""

from __future__ import annotations

import contextlib
import os
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.errors import InvalidModel
from opsieve.models import read_model

from .files import MODELS, script_members, unzipped, write

FILES = {path: path.read_bytes() for path in MODELS}
ARCHIVES = {path: unzipped(path) for path in MODELS if path.suffix != ".ff"}
MUTATION = settings(max_examples=200)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "model"


def read_or_refuse(path: Path) -> None:
    with contextlib.suppress(InvalidModel):
        read_model(path)


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` with bytes changed, a piece repeated, removed or put elsewhere, and perhaps its end cut off."""
    content = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, max(len(content) - 1, 0)))
        stop = min(len(content), start + draw(st.integers(0, 16)))
        match draw(st.sampled_from(["replace", "insert", "remove", "copy", "cut"])):
            case "replace":
                content[start:stop] = draw(st.binary(min_size=stop - start, max_size=stop - start))
            case "insert":
                content[start:start] = draw(st.binary(max_size=16))
            case "remove":
                del content[start:stop]
            case "copy":
                elsewhere = draw(st.integers(0, len(content)))
                content[elsewhere:elsewhere] = content[start:stop]
            case _:
                del content[stop:]
    return bytes(content)


@MUTATION
@given(st.data())
def test_damaged_files(target: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(list(FILES)))
    target.write_bytes(data.draw(damaged(FILES[path])))
    read_or_refuse(target)


@MUTATION
@given(st.data())
def test_damaged_members_with_right_checksums(target: Path, data: st.DataObject) -> None:
    """Checksums catch accidents; whoever means harm writes new ones."""
    members = dict(ARCHIVES[data.draw(st.sampled_from(list(ARCHIVES)))])
    name = data.draw(st.sampled_from([name for name, content in members.items() if content]))
    members[name] = data.draw(damaged(members[name]))
    read_or_refuse(write(target, members))


@MUTATION
@given(st.data())
def test_members_exchanged_between_models(target: Path, data: st.DataObject) -> None:
    members = dict(ARCHIVES[data.draw(st.sampled_from(list(ARCHIVES)))])
    others = ARCHIVES[data.draw(st.sampled_from(list(ARCHIVES)))]
    for name in data.draw(st.lists(st.sampled_from(sorted(others)), max_size=4)):
        members[data.draw(st.sampled_from(sorted(members)))] = others[name]
    read_or_refuse(write(target, members))


def test_a_pickle_in_a_model_is_never_run(tmp_path: Path) -> None:
    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "made"),)

    harmful = pickle.dumps((8, Harmful()), 2)
    for name in ("bytecode.pkl", "constants.pkl", "data.pkl"):
        read_or_refuse(write(tmp_path / "m", {**script_members(), name: harmful}))
    assert not (tmp_path / "made").exists()
