"""What is printed of a build from source."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from opsieve.cli.build_source import _print_notes

LOADER = "torch/csrc/jit/mobile/flatbuffer_loader.cpp"


def report(missing: tuple[str, ...] = (), left_out: tuple[tuple[str, str], ...] = ()) -> Any:
    operators = tuple(SimpleNamespace(name=name) for name in missing)
    symbols = {f"symbol{number}": item for number, item in enumerate(left_out)}
    return SimpleNamespace(wanted=SimpleNamespace(missing=operators), left_out=symbols)


def test_a_source_that_is_left_out_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    item = (LOADER, "flatbuffers/flatbuffers.h is not installed")
    _print_notes(report(left_out=(item, item)))
    printed = capsys.readouterr().out
    assert printed == "note: flatbuffer_loader.cpp left out: flatbuffers/flatbuffers.h is not installed\n"


def test_long_notes_are_wrapped_and_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _print_notes(report(("my::" + "o" * 60,), (("a/b.cpp", "static assertion failed: \x1b[31m" + "words " * 30),)))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 3
    assert all(len(line) <= 80 for line in lines)
    assert "\\x1b[31m" in lines[2]
