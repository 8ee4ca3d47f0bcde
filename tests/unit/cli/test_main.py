from __future__ import annotations

import subprocess
import sys

import click
import pytest

from opsieve import __version__
from opsieve.cli import main as main_module
from opsieve.cli.main import COMMANDS, INTERNAL_ERROR, INTERRUPTED, Entry, run
from opsieve.errors import InvalidModel


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> None:
    """A subcommand `probe` that lives in this module as `command`."""
    monkeypatch.setitem(COMMANDS, "probe", Entry(__name__, "Does what the test asks."))


@click.command("probe")
@click.argument("what")
def command(what: str) -> int | None:
    """Do `what`."""
    match what:
        case "find":
            return 1
        case "fault":
            raise InvalidModel("broken \x1b[31m", where="m.pt", remedy="mend it")
        case "interrupt":
            raise KeyboardInterrupt
        case "bug":
            raise ValueError("oops")
        case "exit":
            raise SystemExit(7)
    return None


def test_every_command_in_the_table_can_be_imported_and_is_called_so() -> None:
    for name, entry in COMMANDS.items():
        found = main_module.LazyGroup().get_command(click.Context(main_module.opsieve), name)
        assert isinstance(found, click.Command)
        assert found.name == name
        assert entry.summary[-1] in ".?"


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    printed = capsys.readouterr().out
    for name, entry in COMMANDS.items():
        assert f"  {name} " in printed
        assert entry.summary.split()[0] in printed


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from opsieve.cli.main import run; run(['--help']);"
        "heavy = {'numpy', 'scipy', 'rich', 'iced_x86', 'yaml', 'msgspec', 'torch'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"opsieve, version {__version__}\n"


@pytest.mark.usefixtures("probe")
@pytest.mark.parametrize(("what", "status"), [("nothing", 0), ("find", 1), ("interrupt", INTERRUPTED)])
def test_exit_statuses(what: str, status: int) -> None:
    assert run(["probe", what]) == status


@pytest.mark.usefixtures("probe")
def test_a_fault_is_a_message_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "fault"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: m.pt: broken \\x1b[31m\ntry: mend it\n"


@pytest.mark.usefixtures("probe")
def test_a_fault_of_ours_is_told_as_such(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "bug"]) == INTERNAL_ERROR
    message = capsys.readouterr().err
    assert message.startswith("error: ValueError: oops")
    assert "--debug" in message


@pytest.mark.usefixtures("probe")
@pytest.mark.parametrize(("what", "error"), [("fault", InvalidModel), ("bug", ValueError)])
def test_debug_lets_the_traceback_through(what: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(["--debug", "probe", what])


@pytest.mark.parametrize("arguments", [["nosuch"], ["ops"], ["ops", "--nosuch", "x"], ["--nosuch"]])
def test_wrong_usage_ends_with_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments) == 2
    assert "Error:" in capsys.readouterr().err


def test_without_arguments_there_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([]) == 2
    captured = capsys.readouterr()
    assert "Commands:" in captured.out + captured.err


MUCH_OUTPUT = """
import sys, types
import click
from opsieve.cli import main
from opsieve.cli.output import print_table

def much(table):
    for number in range(100000):
        print_table(("x",), [("y",)]) if table else click.echo("x" * 100)

module = sys.modules["much"] = types.ModuleType("much")
module.command = click.Command("much", callback=much, params=[click.Option(["--table"], is_flag=True)])
main.COMMANDS["much"] = main.Entry("much", "")
sys.exit(main.run(["much", *sys.argv[1:]]))
"""


@pytest.mark.parametrize("arguments", [[], ["--table"]])
def test_a_reader_that_goes_away_is_no_fault(arguments: list[str]) -> None:
    command_line = [sys.executable, "-c", MUCH_OUTPUT, *arguments]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == main_module.READER_GONE
