"""`opsieve build --runtime source`: a runtime linked from a source tree."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from opsieve.cli.options import read_needs
from opsieve.cli.output import print_json, print_table, print_text, printable, progress
from opsieve.cli.source_options import SourceOptions

if TYPE_CHECKING:
    from opsieve.runtimes.source.build import SourceReport
    from opsieve.select.choose import ExtraOperator


def build_from_source_tree(
    options: SourceOptions,
    models: tuple[Path, ...],
    extra: Sequence[ExtraOperator],
    scopes: tuple[str, ...],
    python: Path | None,
    output: Path | None,
    dry_run: bool,
    force: bool,
    output_format: str,
) -> int:
    """Build, and tell what came of it."""
    if options.source is None:
        raise click.UsageError("say which PyTorch to build with --source DIR; `opsieve source get` fetches one")
    from opsieve.graph.scopes import parse_scopes
    from opsieve.runtimes.source.build import SourceRequest, build
    from opsieve.runtimes.source.tree import SourceTree
    from opsieve.runtimes.source.wanted import Policy

    tree = SourceTree.open(options.source)
    with progress() as bars:
        request = SourceRequest(
            tree=tree,
            models=tuple(read_needs(models, python, bars)),
            extra=tuple(extra),
            options=options.build_options(),
            compiler=options.compiler,
            linker=options.linker,
            policy=Policy(options.policy),
            scopes=parse_scopes(scopes),
            folding=options.icf,
            parallel=options.jobs,
            command=("opsieve", *sys.argv[1:]),
        )
        report = build(request, None if dry_run else output, force=force, progress=bars)
    if output_format == "json":
        print_json(_as_json(report))
    else:
        _print(report, None if dry_run else output)
    return 0


def _print(report: SourceReport, output: Path | None) -> None:
    rows = [
        ("asked for by models and options", str(len(report.wanted.roots))),
        ("kept by the link, with what these need", str(len(report.selection.operators))),
        ("in the source tree", str(report.tree_operator_count)),
    ]
    print_table(("operators", "count"), rows, right=("count",))
    account = report.account
    parts = [
        ("the runtime itself", account.core.total),
        ("what single operators need", account.alone.total),
        ("what several operators share", account.shared.total),
        ("the program, without symbols", account.program_bytes),
    ]
    click.echo()
    print_table(("part", "bytes"), [(name, f"{size:,}") for name, size in parts], right=("bytes",))
    click.echo(
        f"\n{report.compiled} of {report.object_count} files had to be compiled; {report.rounds} links with "
        f"{report.linker.kind}."
    )
    _print_notes(report)
    if output is None:
        click.echo("\nNothing was written.")
    else:
        click.echo(f"\nThe runtime is in {output}. Try it with\n\n  {output / 'bin/run'} MODEL --shape 1,3,224,224")


def _print_notes(report: SourceReport) -> None:
    for operator in report.wanted.missing:
        name = printable(str(operator.name))
        print_text(f"note: {name} is not in this source tree; a library you link must bring it")
    for source, reason in sorted(set(report.left_out.values())):
        print_text(f"note: {PurePosixPath(source).name} left out: {printable(reason)}")


def _as_json(report: SourceReport) -> dict[str, object]:
    account = report.account
    return {
        "version": account.runtime.version,
        "linker": {"name": report.linker.kind, "exact": report.linker.is_exact},
        "operators": sorted(report.selection.names),
        "roots": [str(operator.name) for operator in report.wanted.roots],
        "missing": [str(operator.name) for operator in report.wanted.missing],
        "left_out": [{"source": source, "reason": reason} for source, reason in sorted(set(report.left_out.values()))],
        "always": list(report.always),
        "program_bytes": account.program_bytes,
        "core_bytes": account.core.total,
        "shared_bytes": account.shared.total,
        "compiled": report.compiled,
        "objects": report.object_count,
        "links": report.rounds,
    }
