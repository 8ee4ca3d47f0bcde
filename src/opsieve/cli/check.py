"""`opsieve check`: will these models load and run on that runtime?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.options import python_option
from opsieve.cli.output import format_option, print_json, print_table, print_text, printable, progress

if TYPE_CHECKING:
    from opsieve.models.needs import ModelNeeds
    from opsieve.progress import Progress
    from opsieve.verify.check import ModelCheck, RuntimeFacts


@click.command("check")
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MODEL...")
@click.option(
    "--against",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The runtime: what `opsieve build -o DIR` wrote.",
)
@python_option
@format_option
def command(models: tuple[Path, ...], against: Path, python: Path | None, output_format: str) -> int:
    """Say all that the MODELs would miss on the runtime in DIR, when loading and running, without running anything.

    Exit status 1 if anything is missing.
    """
    from opsieve.verify.check import check, read_runtime

    runtime = read_runtime(against)
    with progress() as bars:
        checked = check(_needs(models, python, bars), runtime, bars)
    if output_format == "json":
        print_json(_as_json(checked, runtime))
    else:
        _print(checked, runtime)
    return 1 if any(model.findings for model in checked) else 0


def _needs(models: Sequence[Path], python: Path | None, bars: Progress) -> list[ModelNeeds]:
    """Overloads of TorchScript models are asked of a PyTorch if there is one; other formats say them themselves."""
    from opsieve.errors import MissingInstallation
    from opsieve.installed import find_torch
    from opsieve.models import TorchOverloads, read_models

    try:
        overloads = TorchOverloads(find_torch(python))
    except MissingInstallation:
        if python is not None:
            raise
        overloads = None
    return read_models(models, overloads=overloads, progress=bars)


def _print(checked: Sequence[ModelCheck], runtime: RuntimeFacts) -> None:
    for model in checked:
        lacks = len(model.findings)
        state = "nothing is missing" if not lacks else f"{lacks} thing{'s'[: lacks != 1]} missing"
        click.echo(f"{printable(model.path)}: {state}")
        if model.findings:
            click.echo()
            rows = [(printable(f.name), str(f.kind), str(f.when), printable(f.problem)) for f in model.findings]
            print_table(("missing", "kind", "fails at", "because"), [_narrow(row) for row in rows])
            for remedy in dict.fromkeys(f.remedy for f in model.findings if f.remedy and not f.option):
                print_text(f"remedy: {printable(remedy)}")
        for note in model.notes:
            print_text(f"note: {printable(note)}")
    rebuild = runtime.rebuild(checked)
    if rebuild is not None:
        click.echo(f"\nTo add what can be added:\n\n  {printable(rebuild)}")


_BECAUSE = 34


def _narrow(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    """The last column cut, so that the table fits; JSON has all of it."""
    *first, because = row
    cut = because if len(because) <= _BECAUSE else f"{because[: _BECAUSE - 3]}..."
    return (first[0], first[1], first[2], cut)


def _as_json(checked: Sequence[ModelCheck], runtime: RuntimeFacts) -> dict[str, object]:
    return {
        "runtime": {
            "folder": str(runtime.folder),
            "version": runtime.selection.runtime.version,
            "kind": "wheel" if runtime.capabilities is None else "source",
        },
        "models": [
            {
                "path": model.path,
                "format": model.format,
                "notes": list(model.notes),
                "missing": [
                    {
                        "kind": str(finding.kind),
                        "name": finding.name,
                        "fails_at": str(finding.when),
                        "problem": finding.problem,
                        "used_by": list(finding.used_by),
                        "remedy": finding.remedy,
                    }
                    for finding in model.findings
                ],
            }
            for model in checked
        ],
        "rebuild": runtime.rebuild(checked),
    }
