"""`opsieve graph`: the operators of a library, and which needs which."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.options import python_option, scope_option
from opsieve.cli.output import print_json, print_table, print_text, progress

if TYPE_CHECKING:
    from opsieve.graph.dependencies import Dependencies
    from opsieve.graph.op_graph import OpGraph
    from opsieve.installed import TorchInstall


@click.command("graph")
@click.argument("library", required=False, type=click.Path(path_type=Path), metavar="[LIBRARY]")
@scope_option
@click.option("--operators", "list_operators", is_flag=True, help="List the names of all operators.")
@click.option("--needs", metavar="OPERATOR", help="Show what this operator needs, directly and altogether.")
@click.option(
    "--truth", is_flag=True, help="Compare with what this PyTorch says of itself; exit status 1 if it differs."
)
@click.option("--rebuild", is_flag=True, help="Analyse the library again, even if it is in the cache.")
@python_option
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "json", "yaml", "dot"]),
    default="table",
    show_default=True,
    help="How to print the result; yaml and dot give the dependencies of all operators.",
)
def command(
    library: Path | None,
    scopes: tuple[str, ...],
    list_operators: bool,
    needs: str | None,
    truth: bool,
    rebuild: bool,
    python: Path | None,
    output_format: str,
) -> int:
    """Analyse LIBRARY, by default the libtorch_cpu.so of the PyTorch that is installed.

    The analysis is kept in the cache folder, by the build id of the library.
    """
    from opsieve.graph.dependencies import find_dependencies
    from opsieve.graph.load import LIBRARY, library_install, load_op_graph
    from opsieve.graph.scopes import parse_scopes
    from opsieve.installed import find_torch

    install = find_torch(python) if library is None else library_install(library, python)
    with progress() as bars:
        graph = load_op_graph(install, bars, rebuild=rebuild, library=library)
    if truth:
        return _truth(install, library or install.library(LIBRARY), graph, output_format)
    if list_operators:
        _list(graph, output_format)
        return 0
    dependencies = find_dependencies(graph, parse_scopes(scopes))
    if needs is not None:
        _needs(dependencies, needs, output_format)
    elif output_format in ("yaml", "dot"):
        _whole(dependencies, output_format)
    else:
        _summary(install, dependencies, output_format)
    return 0


def _summary(install: TorchInstall, dependencies: Dependencies, output_format: str) -> None:
    graph = dependencies.graph
    keys: dict[str, int] = {}
    for operator, by_key in graph.registrations.items():
        for key in by_key if not operator.endswith("*") else ():
            keys[key] = keys.get(key, 0) + 1
    facts = {
        "version": install.version,
        "build_id": graph.build_id,
        "functions": len(graph.code.functions),
        "data_objects": len(graph.code.data),
        "references": len(graph.code.targets),
        "operators": len(graph.operators),
        "interpreter_operators": sum(not graph.reaches_dispatcher(operator) for operator in graph.operators),
        "dependencies": int(dependencies.needs.sum()),
        "scopes": sorted(dependencies.scopes),
    }
    if output_format == "json":
        print_json({**facts, "registrations": keys})
        return
    rows = [(name.replace("_", " "), ", ".join(v) if isinstance(v, list) else str(v)) for name, v in facts.items()]
    print_table(("graph", ""), rows)
    click.echo()
    print_table(("dispatch key", "operators"), [(key, str(keys[key])) for key in sorted(keys)], right=("operators",))


def _list(graph: OpGraph, output_format: str) -> None:
    if output_format == "json":
        print_json(list(graph.operators))
    else:
        click.echo("\n".join(graph.operators))


def _needs(dependencies: Dependencies, operator: str, output_format: str) -> None:
    from opsieve.operators import OperatorName

    name = str(OperatorName.parse(operator))
    direct, closure = sorted(dependencies.direct(name)), sorted(dependencies.closure([name]))
    if output_format == "json":
        always = sorted(dependencies.always)
        print_json({"operator": name, "direct": direct, "always": always, "closure": closure})
        return
    click.echo(f"{name} may dispatch to {len(direct)} operators:\n")
    click.echo("".join(f"  {needed}\n" for needed in direct))
    print_text(
        f"With what these need in turn, and the {len(dependencies.always)} operators that any operator may need, "
        f"{len(closure)} operators stay for it."
    )


def _whole(dependencies: Dependencies, output_format: str) -> None:
    from opsieve.emit.op_dependencies import dependencies_dot, dependencies_yaml

    write = dependencies_yaml if output_format == "yaml" else dependencies_dot
    click.echo(write({name: dependencies.direct(name) for name in dependencies.graph.operators}), nl=False)


def _truth(install: TorchInstall, library: Path, graph: OpGraph, output_format: str) -> int:
    from opsieve.graph.symbols import INTERPRETER
    from opsieve.graph.truth import compare_registrations, read_truth, source_files_in

    truth = read_truth(install)
    # The other libraries of the package register a few operators too.
    differences = compare_registrations(graph.registrations, truth, files=source_files_in(library, truth))
    if output_format == "json":
        print_json(
            [
                {"key": d.key, "expected": d.expected, "found": d.found, "missing": d.missing, "spurious": d.spurious}
                for d in differences
            ]
        )
    else:
        rows = [(d.key, str(d.expected), str(d.found), str(len(d.missing)), str(len(d.spurious))) for d in differences]
        columns = ("dispatch key", "expected", "found", "missing", "spurious")
        print_table(columns, rows, right=columns[1:])
    # What the interpreter has and the dispatcher does not is nothing to prune: whoever calls it keeps its whole name.
    return 1 if any(d.missing or d.spurious for d in differences if d.key != INTERPRETER) else 0
