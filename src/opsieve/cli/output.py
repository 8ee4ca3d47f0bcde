"""What all commands print with: tables, JSON, progress. rich is imported only when something is drawn."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import IO, TYPE_CHECKING, Any

import click

from opsieve.progress import SILENT, Advance, Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as Bars

WIDTH = 80
"""Columns when the output is no terminal, so that files and tests look the same everywhere."""

_Command = Callable[..., Any]


def format_option(command: _Command) -> _Command:
    """The option `--format table|json`, as argument `output_format`."""
    return click.option(
        "--format",
        "output_format",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How to print the result.",
    )(command)


def console(stream: IO[str] | None = None) -> Console:
    """A rich console on `stream`, standard output by default. Text is printed as it is, without markup."""
    from rich.console import Console

    class Plain(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process with status 1
            raise BrokenPipeError

    target = stream or sys.stdout
    width = None if target.isatty() else WIDTH
    return Plain(file=target, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def print_json(value: object) -> None:
    """Print `value` as JSON, keys sorted, so that two runs can be compared."""
    click.echo(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False))


def print_text(text: str) -> None:
    """Print a paragraph, in lines that fit."""
    click.echo(textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str | None = None, right: Sequence[str] = ()
) -> None:
    """Print rows of text under `columns`; those named in `right` are aligned right, as numbers should be.

    Long text in the first column is folded, the others keep their width.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for number, column in enumerate(columns):
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=number > 0,
        )
    for row in rows:
        table.add_row(*row)
    console().print(table)


class RichProgress:
    """Draws the stages of a piece of work as bars."""

    def __init__(self, bars: Bars) -> None:
        self._bars = bars

    def stage(self, title: str, total: int | None = None) -> AbstractContextManager[Advance]:
        """Open a bar; it disappears when the stage ends."""
        return self._stage(title, total)

    @contextmanager
    def _stage(self, title: str, total: int | None) -> Iterator[Advance]:
        task = self._bars.add_task(title, total=total)
        try:
            yield lambda amount: self._bars.advance(task, amount)
        finally:
            self._bars.remove_task(task)


def progress() -> AbstractContextManager[Progress]:
    """Progress bars on standard error while the context is open; nothing when that is no terminal."""
    return _drawn() if sys.stderr.isatty() else nullcontext(SILENT)


@contextmanager
def _drawn() -> Iterator[Progress]:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console(sys.stderr), transient=True) as bars:
        yield RichProgress(bars)


def megabytes(size: int) -> str:
    """Bytes in units of 10^6, with one decimal."""
    return f"{size / 1e6:.1f}"


def printable(text: str) -> str:
    """`text` without control characters, which a hostile file could use to steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)
