"""Runs command lines as the installed script does, and keeps what they print."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from opsieve.cli.main import run

WIDTH = 80


@dataclass(frozen=True)
class Result:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def fails(self, *parts: str) -> bool:
        """Whether it ended as wrong usage or input, saying all of this, and without a traceback."""
        assert "Traceback" not in self.err
        assert "fault of opsieve" not in self.err
        return self.status == 2 and all(part in self.err for part in parts)


@pytest.fixture
def opsieve(capsys: pytest.CaptureFixture[str], cache_of_the_tests: None) -> Callable[..., Result]:
    def command(*arguments: str | Path) -> Result:
        status = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Result(status, captured.out, captured.err)

    return command


def fits(text: str) -> bool:
    return all(len(line.rstrip()) <= WIDTH for line in text.splitlines())
