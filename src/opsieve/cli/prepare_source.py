"""`opsieve build --runtime source --prepare`: compile everything of a source tree, once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.output import megabytes, print_json, print_table, printable, progress
from opsieve.cli.source_options import SourceOptions

if TYPE_CHECKING:
    from opsieve.runtimes.source.objects import CompileFailure
    from opsieve.runtimes.source.prepare import Prepared

_SHOWN = 78


def prepare_source(options: SourceOptions, output_format: str) -> int:
    """Compile, and tell what came of it. Status 1 if a source does not compile for another reason than a header."""
    if options.source is None:
        raise click.UsageError("say which PyTorch to prepare with --source DIR; `opsieve source get` fetches one")
    from opsieve.runtimes.source.objects import Compiler, ObjectStore
    from opsieve.runtimes.source.prepare import prepare
    from opsieve.runtimes.source.tree import SourceTree

    tree = SourceTree.open(options.source)
    with progress() as bars:
        compiler = Compiler.find(options.compiler)
        prepared = prepare(tree, options.build_options(), compiler, ObjectStore.of_user(), bars, options.jobs)
    if output_format == "json":
        print_json(_as_json(prepared))
    else:
        _print(prepared, options.source)
    return 1 if prepared.failures else 0


def _print(prepared: Prepared, source: Path) -> None:
    count = len(prepared.archive.objects)
    rows = [
        ("compiled now", str(prepared.compiled)),
        ("compiled before", str(count - prepared.compiled)),
        ("left out: a header is not installed", str(len(prepared.left_out))),
        ("do not compile", str(len(prepared.failures))),
    ]
    print_table(("source files", "count"), rows, right=("count",))
    click.echo(f"\n{megabytes(prepared.bytes)} MB of objects, in {prepared.seconds:.0f} s.")
    for heading, failures in (("left out", prepared.left_out), ("does not compile", prepared.failures)):
        for name, failure in sorted(failures.items()):
            click.echo(f"\n{heading}: {printable(name)}\n  {printable(_message(failure))}")
    if prepared.left_out:
        click.echo(f"\nNot every runtime needs them; `opsieve doctor --source {source}` tells which package has what.")
    click.echo(f"\nA runtime is one link now; to hand it on:\n\n  opsieve runtime pack FILE --source {source}")


def _message(failure: CompileFailure) -> str:
    from opsieve.runtimes.source.objects import cause

    words = cause(failure.errors[0]) if failure.errors else "no message"
    return words if len(words) <= _SHOWN else f"{words[: _SHOWN - 3]}..."


def _as_json(prepared: Prepared) -> dict[str, object]:
    return {
        "objects": len(prepared.archive.objects),
        "bytes": prepared.bytes,
        "compiled": prepared.compiled,
        "left_out": {name: _message(failure) for name, failure in prepared.left_out.items()},
        "failures": {name: _message(failure) for name, failure in prepared.failures.items()},
        "seconds": round(prepared.seconds, 1),
        "folder": str(prepared.archive.folder),
    }
