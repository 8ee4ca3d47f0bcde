"""What `opsieve build` refuses, before it writes anything. What it writes is tested with the runtimes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.cli.conftest import Result

pytestmark = pytest.mark.torch
Opsieve = Callable[..., Result]


def test_wrong_usage(opsieve: Opsieve, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert opsieve("build", "--op", "aten::relu").fails("-o DIR", "--dry-run")
    assert opsieve("build", "-o", out).fails("name at least one MODEL, --op or --ops-from")
    assert opsieve("build", "--op", "aten::relu", "-o", out, "--scope", "x").fails("'x' is not one of")
    assert opsieve("build", "--op", "aten::relu", "-o", out, "--consumer", tmp_path / "none").fails("does not exist")
    assert not out.exists()


def test_wrong_input(opsieve: Opsieve, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert opsieve("build", "--op", "relu", "-o", out).fails("'relu' is not an operator name")
    unknown = opsieve("build", "--op", "aten::lineer", "-o", out)
    assert unknown.fails("--op: this PyTorch has no operator aten::lineer", "expected: aten::linear", "--operators")
    operators = tmp_path / "ops.txt"
    operators.write_text("aten::relu\n\naten::no_such_thing\n")
    assert opsieve("build", "--ops-from", operators, "-o", out).fails(f"{operators}:3", "aten::no_such_thing")
    operators.write_text("aten::relu\nwhat is this\n")
    assert opsieve("build", "--ops-from", operators, "-o", out).fails(f"{operators}:2", "'what is this'")
    model = tmp_path / "model.pt"
    model.write_bytes(b"no model")
    assert opsieve("build", model, "-o", out).fails(str(model))
    assert opsieve("build", tmp_path / "missing.pt", "-o", out).fails("missing.pt")
    assert not out.exists()


def test_nothing_is_overwritten(opsieve: Opsieve, tmp_path: Path) -> None:
    precious = tmp_path / "python"
    precious.mkdir()
    assert opsieve("build", "--op", "aten::relu", "-o", tmp_path).fails("exists already", "--force", str(precious))
    assert list(tmp_path.iterdir()) == [precious]
