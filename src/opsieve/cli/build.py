"""`opsieve build`: the main job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsieve.cli.options import extra_operators, operator_options, python_option, read_needs, scope_option
from opsieve.cli.output import format_option, megabytes, print_json, print_table, printable, progress
from opsieve.cli.source_options import SourceOptions, source_options

if TYPE_CHECKING:
    from opsieve.runtimes.wheel.build import BuildReport, Plan
    from opsieve.runtimes.wheel.library.report import SlimReport
    from opsieve.select.selection import Selection


@click.command("build")
@click.argument("models", nargs=-1, type=click.Path(path_type=Path), metavar="MODEL...")
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="DIR", help="Where to put the runtime.")
@click.option(
    "--runtime",
    type=click.Choice(["wheel", "source"]),
    default="wheel",
    show_default=True,
    help="Cut the PyTorch that is installed, or build from a source tree (options from --source on).",
)
@operator_options
@scope_option
@click.option(
    "--consumer",
    "consumers",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="A program or library that calls PyTorch's C++ functions; what it calls is kept.",
)
@click.option("--with-headers", is_flag=True, help="Keep the C++ headers and the CMake package.")
@click.option("--no-wheel", is_flag=True, help="Write only the folder, not the wheel.")
@click.option("--dry-run", is_flag=True, help="Say what would be kept and how large it is; write nothing.")
@click.option("--force", is_flag=True, help="Replace what is in the output folder.")
@python_option
@source_options
@format_option
def command(
    models: tuple[Path, ...],
    output: Path | None,
    ops: tuple[str, ...],
    ops_from: tuple[Path, ...],
    scopes: tuple[str, ...],
    consumers: tuple[Path, ...],
    with_headers: bool,
    no_wheel: bool,
    dry_run: bool,
    force: bool,
    python: Path | None,
    output_format: str,
    runtime: str,
    **source: Any,  # noqa: ANN401 - the fields of SourceOptions
) -> int | None:
    """Build a PyTorch that holds only what the MODELs need, from the PyTorch that is installed.

    DIR then holds `python/` (put it onto PYTHONPATH), a wheel for pip, `selection.json` with the reason for each
    operator, and `selected_operators.yaml` for PyTorch's own tools. The installed PyTorch is not changed.
    """
    if source["prepare"] and runtime == "source":
        from opsieve.cli.prepare_source import prepare_source

        if models or ops or ops_from or output:
            raise click.UsageError("--prepare compiles for every model: it takes no MODEL, no --op and no -o")
        return prepare_source(SourceOptions(**source), output_format)
    if output is None and not dry_run:
        raise click.UsageError("say where to put the runtime with -o DIR, or ask for --dry-run")
    if not (models or ops or ops_from):
        raise click.UsageError("name at least one MODEL, --op or --ops-from")
    _refuse_foreign(runtime, source)
    extra = extra_operators(ops, ops_from)
    if runtime == "source":
        from opsieve.cli.build_source import build_from_source_tree

        options = SourceOptions(**source)
        return build_from_source_tree(options, models, extra, scopes, python, output, dry_run, force, output_format)
    from opsieve.files import refuse_existing
    from opsieve.graph.scopes import parse_scopes
    from opsieve.installed import find_torch
    from opsieve.runtimes.wheel.build import BuildRequest, build, plan_build
    from opsieve.runtimes.wheel.package import PYTHON_FOLDER

    if output is not None and not dry_run:
        refuse_existing(output / PYTHON_FOLDER, force)
    with progress() as bars:
        request = BuildRequest(
            models=read_needs(models, python, bars),
            extra=extra,
            scopes=parse_scopes(scopes),
            consumers=consumers,
            with_headers=with_headers,
            wheel=not no_wheel,
        )
        plan = plan_build(find_torch(python), request, bars)
        if output is None or dry_run:
            _dry_run(plan, output_format)
            return None
        report = build(plan, output, force=force, progress=bars)
    if output_format == "json":
        print_json(_as_json(report))
    else:
        _print_selection(report.selection)
        _print_report(report, output)
    return None


_ONLY_WHEEL = ("consumers", "with_headers", "no_wheel")


def _refuse_foreign(runtime: str, source: dict[str, Any]) -> None:
    """Refuse options of the other runtime: silently ignoring one would build something else than was asked for."""
    context = click.get_current_context()
    for parameter in context.command.params:
        foreign = parameter.name in (source if runtime == "wheel" else _ONLY_WHEEL)
        given = context.get_parameter_source(parameter.name or "") is click.core.ParameterSource.COMMANDLINE
        if foreign and given:
            raise click.UsageError(f"{parameter.opts[-1]} is not for --runtime {runtime}")


def _dry_run(plan: Plan, output_format: str) -> None:
    import tempfile

    from opsieve.runtimes.wheel.build import slim_libraries

    with tempfile.TemporaryDirectory(prefix="opsieve-") as folder:
        libraries = slim_libraries(plan, Path(folder))
    if output_format == "json":
        sizes = {name: {"stock": r.stock_size, "slim": r.file_size} for name, r in libraries.items()}
        print_json({"operators": sorted(plan.selection.names), "libraries": sizes})
        return
    _print_selection(plan.selection)
    print_table(("file", "stock MB", "slim MB"), _library_rows(libraries), right=("stock MB", "slim MB"))
    click.echo("\nNothing was written.")


def _print_selection(selection: Selection) -> None:
    from opsieve.select.selection import ReasonKind

    def count(*kinds: ReasonKind) -> int:
        return sum(any(reason.kind in kinds for reason in operator.reasons) for operator in selection.operators)

    rows = [
        ("called by the models", str(count(ReasonKind.MODEL))),
        ("asked for by options", str(count(ReasonKind.OPTION))),
        ("used by PyTorch itself", str(count(ReasonKind.FRAMEWORK))),
        ("needed by other operators", str(count(ReasonKind.DEPENDENCY, ReasonKind.ANY_OPERATOR))),
        ("all that stay", str(len(selection.operators))),
    ]
    print_table(("operators", "count"), rows, right=("count",))
    click.echo(f"\nscopes: {', '.join(selection.scopes)}\n")
    for operator in selection.missing:
        click.echo(f"note: {printable(str(operator.name))} is not in this PyTorch; a library you load must bring it")


def _print_report(report: BuildReport, output: Path) -> None:
    package = report.package
    rows = [
        *_library_rows(report.libraries),
        ("the whole package", megabytes(package.stock_bytes), megabytes(package.kept_bytes)),
    ]
    if package.wheel:
        rows.append(("the wheel (compressed)", "", megabytes(package.wheel.stat().st_size)))
    print_table(("file", "stock MB", "slim MB"), rows, right=("stock MB", "slim MB"))
    dropped = sum(file.size for file in package.dropped)
    click.echo(
        f"\n{len(package.dropped)} files ({megabytes(dropped)} MB) were dropped; report.json says which and why."
    )
    click.echo(f"\nPyTorch {package.version} is in {output}. Use it with one of\n")
    click.echo(f"  PYTHONPATH={package.folder} python ...")
    if package.wheel:
        click.echo(f"  pip install --force-reinstall --no-deps {package.wheel}")
    click.echo(f"\nand prove it with\n\n  opsieve verify {output}")


def _library_rows(libraries: dict[str, SlimReport] | object) -> list[tuple[str, str, str]]:
    from collections.abc import Mapping

    if not isinstance(libraries, Mapping):
        return []
    return [
        (name, megabytes(report.stock_size), megabytes(report.file_size))
        for name, report in sorted(libraries.items(), key=lambda item: -item[1].stock_size)
        if report.stock_size > 1_000_000
    ]


def _as_json(report: BuildReport) -> dict[str, object]:
    package = report.package
    return {
        "version": package.version,
        "folder": str(package.folder),
        "wheel": str(package.wheel) if package.wheel else None,
        "stock_bytes": package.stock_bytes,
        "kept_bytes": package.kept_bytes,
        "scopes": list(report.selection.scopes),
        "operators": sorted(report.selection.names),
        "missing": [str(operator.name) for operator in report.selection.missing],
        "libraries": {name: {"stock": r.stock_size, "slim": r.file_size} for name, r in report.libraries.items()},
        "dropped": [{"path": f.path, "size": f.size, "reason": f.reason} for f in package.dropped],
    }
