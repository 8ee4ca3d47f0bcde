"""`opsieve doctor`: what is missing on this machine, with the line that installs it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.output import format_option, print_json, print_table, print_text, printable

if TYPE_CHECKING:
    from opsieve.runtimes.source.doctor import Check, Diagnosis
    from opsieve.runtimes.source.tree import SourceTree

_FOUND_WIDTH = 28


@click.command("doctor")
@click.option(
    "--runtime", type=click.Choice(["source"]), default="source", show_default=True, help="What is to be built."
)
@click.option("--source", type=click.Path(path_type=Path), metavar="DIR", help="The source tree to be built from.")
@format_option
def command(runtime: str, source: Path | None, output_format: str) -> int:
    """Say which tools and headers a build from source needs, and which are missing.

    A clone of PyTorch with its submodules has some of the headers: name it with --source. Exit status 1 if something
    is missing that every build needs.
    """
    from opsieve.runtimes.source.doctor import diagnose
    from opsieve.runtimes.source.tree import SourceTree

    tree = SourceTree.open(source) if source else None
    diagnosis = diagnose(tree)
    if output_format == "json":
        print_json(_as_json(diagnosis, tree))
    else:
        if tree:
            click.echo(f"PyTorch {tree.version} in {tree.root}\n")
        _print(diagnosis)
    return 1 if diagnosis.missing else 0


def _print(diagnosis: Diagnosis) -> None:
    rows = [(check.name, _state(check), check.needed_for) for check in diagnosis.checks]
    print_table(("what", "found", "needed for"), rows)
    for check in diagnosis.checks:
        if check.note:
            click.echo()
            print_text(f"note: {printable(check.note)}")
    if diagnosis.install_required:
        click.echo(f"\nTo install what is missing:\n\n  {diagnosis.install_required}")
    elif not diagnosis.missing:
        click.echo("\nNothing that every build needs is missing.")
    if diagnosis.install_optional:
        click.echo(f"\nTo install what is optional:\n\n  {diagnosis.install_optional}")


def _state(check: Check) -> str:
    if check.ok:
        found = check.found
        return printable(found if len(found) <= _FOUND_WIDTH else f"...{found[3 - _FOUND_WIDTH :]}")
    return "MISSING" if check.required else "no (optional)"


def _as_json(diagnosis: Diagnosis, tree: SourceTree | None) -> dict[str, object]:
    return {
        "source": {"version": tree.version, "folder": str(tree.root)} if tree else None,
        "checks": [asdict(check) for check in diagnosis.checks],
        "missing": [check.name for check in diagnosis.missing],
        "install_required": diagnosis.install_required,
        "install_optional": diagnosis.install_optional,
    }
