from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsieve.graph.op_graph import OpGraph
from opsieve.graph.store import load_graph, save_graph
from tests.unit.native import Compiler, fake_torch, op_graph_of


@pytest.fixture(scope="module")
def graph(compiler: Compiler) -> OpGraph:
    return op_graph_of(fake_torch(compiler))


@pytest.fixture
def saved(graph: OpGraph, tmp_path: Path) -> Path:
    save_graph(graph, tmp_path)
    return tmp_path


def assert_equal(found: Any, expected: Any) -> None:
    """Equal, arrays within dataclasses and their types included."""
    assert type(found) is type(expected)
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    elif is_dataclass(expected):
        for field in fields(expected):
            assert_equal(getattr(found, field.name), getattr(expected, field.name))
    else:
        assert found == expected


def test_what_is_loaded_is_what_was_saved(saved: Path, graph: OpGraph) -> None:
    assert_equal(load_graph(saved), graph)


def test_every_file_is_needed(saved: Path) -> None:
    files = sorted(saved.iterdir())
    assert len(files) > 15
    for path in files:
        raw = path.read_bytes()
        path.unlink()
        with pytest.raises(OSError):
            load_graph(saved)
        path.write_bytes(raw)
    load_graph(saved)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damage_anywhere_is_noticed(saved: Path, graph: OpGraph, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(saved.iterdir())))
    raw = path.read_bytes()
    kind = data.draw(st.sampled_from(["cut", "zeros", "changed", "longer"]))
    at = data.draw(st.integers(0, len(raw) - 1))
    damaged = {
        "cut": raw[:at],
        "zeros": bytes(len(raw)),
        "changed": raw[:at] + bytes([raw[at] ^ data.draw(st.integers(1, 255))]) + raw[at + 1 :],
        "longer": raw + b"x",
    }[kind]
    path.write_bytes(damaged)
    with pytest.raises((OSError, ValueError)):
        load_graph(saved)
    path.write_bytes(raw)


def test_numbers_that_do_not_fit_into_half_the_space_survive(graph: OpGraph, tmp_path: Path) -> None:
    from dataclasses import replace

    links = replace(graph.code.links, targets=np.where(graph.code.links.targets > 0, 2**40, -1))
    changed = replace(graph, code=replace(graph.code, links=links))
    save_graph(changed, tmp_path)
    assert_equal(load_graph(tmp_path), changed)
