"""The command `opsieve`: finds the subcommand, and turns faults into a message and an exit status."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import click

from opsieve import __version__
from opsieve.cli.output import printable
from opsieve.errors import OpsieveError

INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""

READER_GONE = 141
"""What a shell reports for a program whose output nobody reads any more (`| head`)."""

INTERNAL_ERROR = 70


class ReaderGone(Exception):
    """Nobody reads standard output any more."""


class Entry(NamedTuple):
    """A subcommand that is imported only when it is called, so that `opsieve --help` stays fast."""

    module: str
    """Has an attribute `command`, a click.Command that returns its exit status or None."""

    summary: str


COMMANDS: dict[str, Entry] = {
    "ops": Entry("opsieve.cli.ops", "The operators that models call, with overloads, per method."),
    "graph": Entry("opsieve.cli.graph", "The operators of a library, and which needs which."),
    "build": Entry("opsieve.cli.build", "The main job: a slim PyTorch for models."),
    "verify": Entry("opsieve.cli.verify", "Does the slim PyTorch give the same answers?"),
    "check": Entry("opsieve.cli.check", "Will a model load and run on a runtime? All that is missing."),
    "why": Entry("opsieve.cli.why", "Why an operator is there, or why not, and what it costs."),
    "runtime": Entry("opsieve.cli.runtime", "Hand on what was compiled from source, as one file."),
    "source": Entry("opsieve.cli.source", "PyTorch's source tree, to build from."),
    "doctor": Entry("opsieve.cli.doctor", "What is missing on this machine, with the line that installs it."),
}
"""In the order of a user's work; one file each."""


class LazyGroup(click.Group):
    """A click group over COMMANDS."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one subcommand."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = importlib.import_module(entry.module).command
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand. click would end with status 1, which means a finding, when the reader is gone."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise ReaderGone from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the summaries without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


@dataclass(slots=True)
class Settings:
    """Options that stand before the subcommand."""

    debug: bool = False


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--debug", is_flag=True, help="Let the traceback of an error through.")
@click.version_option(__version__, prog_name="opsieve")
@click.pass_obj
def opsieve(settings: Settings, debug: bool) -> None:
    """Ship only the operators your models need.

    Exit status: 0 fine, 1 a finding (something missing, stale or different), 2 wrong usage or input.
    """
    settings.debug = debug


def main() -> None:
    """Entry point of the installed script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status. Faults are printed to standard error."""
    settings = Settings()
    try:
        status = opsieve.main(list(arguments), prog_name="opsieve", obj=settings, standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except (ReaderGone, BrokenPipeError):
        # Python would fail again when it flushes standard output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return READER_GONE
    except OpsieveError as error:
        if settings.debug:
            raise
        click.echo(f"error: {printable(str(error))}", err=True)
        return error.exit_status
    except Exception as error:
        if settings.debug:
            raise
        click.echo(
            f"error: {type(error).__name__}: {printable(str(error))}\n"
            "This is a fault of opsieve. Please report it with the output of: opsieve --debug ...",
            err=True,
        )
        return INTERNAL_ERROR
