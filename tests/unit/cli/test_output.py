from __future__ import annotations

import io
import sys

import pytest

from opsieve.cli import output
from opsieve.cli.output import print_json, print_table, printable, progress
from opsieve.progress import SILENT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_tables_fit_80_columns_and_fold_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name", "count"), [("x" * 200, "1"), ("[red]y", "22")], right=("count",), title="title")
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert "".join(lines).count("x") == 200
    assert "[red]y" in printed  # markup in data is data
    assert lines[0].strip() == "title"
    assert any(line.endswith(" 1") for line in lines)


def test_no_row_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("name",), [])
    assert "name" in capsys.readouterr().out


def test_json_is_sorted_and_keeps_letters(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"b": 1, "a": "é"})
    assert capsys.readouterr().out == '{\n  "a": "é",\n  "b": 1\n}\n'


@pytest.mark.parametrize(("text", "shown"), [("a\nb", "a\nb"), ("a\x1b[2J\r\x07", "a\\x1b[2J\\x0d\\x07"), ("é", "é")])
def test_control_characters_are_shown_and_not_sent(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_progress_is_silent_without_a_terminal() -> None:
    with progress() as bars:
        assert bars is SILENT


def test_progress_is_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress() as bars, bars.stage("reading [x]", 2) as advance:
        assert isinstance(bars, output.RichProgress)
        advance(1)
        advance(1)
    assert "reading [x]" in terminal.getvalue()


def test_a_stage_that_fails_ends_its_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress() as bars:
        assert isinstance(bars, output.RichProgress)
        with pytest.raises(ValueError), bars.stage("work"):
            raise ValueError
        assert bars._bars.tasks == []
