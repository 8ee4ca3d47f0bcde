"""`opsieve why`: the chain from a model to an operator, and what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.options import python_option
from opsieve.cli.output import format_option, print_json, print_text, printable, progress

if TYPE_CHECKING:
    from opsieve.explain.why import Chain, Why
    from opsieve.graph.op_graph import OpGraph
    from opsieve.installed import TorchInstall
    from opsieve.select.selection import Reason, Selection

_SHOWN = 5
_RUNTIME = "The runtime itself"


@click.command("why")
@click.argument("operator", metavar="OPERATOR")
@click.argument("directory", type=click.Path(path_type=Path, exists=True), metavar="DIR")
@click.option("--all", "show_all", is_flag=True, help="Show the chain of every root, not only the first five.")
@click.option("--code", is_flag=True, help="Show the C++ functions of each step of the first chain.")
@python_option
@format_option
def command(operator: str, directory: Path, show_all: bool, code: bool, python: Path | None, output_format: str) -> int:
    """Say why OPERATOR is in the runtime that `opsieve build` wrote to DIR, or why it is not.

    DIR may also be a `selection.json`. Exit status 1 if the operator is not there.
    """
    account = _account_file(directory)
    if account is not None:
        return _from_account(operator, account, show_all, code, output_format)
    from opsieve.explain.why import explain
    from opsieve.graph.load import load_op_graph
    from opsieve.installed import find_torch
    from opsieve.operators import OperatorName
    from opsieve.runtimes.wheel.build import SELECTION, keep_for
    from opsieve.runtimes.wheel.roots import loaded_libraries
    from opsieve.select.store import selection_from_json

    name = str(OperatorName.parse(operator))
    selection = selection_from_json(directory / SELECTION if directory.is_dir() else directory)
    install = find_torch(python)
    with progress() as bars:
        graph = load_op_graph(install, bars)
        loaded = loaded_libraries(install)
        why = explain(
            graph,
            selection,
            name,
            lambda operators: keep_for(install, graph, _with_operators(selection, operators), (), lambda: loaded),
        )
    steps = _code(install, graph, selection, why) if code and why.chains else []
    if output_format == "json":
        print_json(_as_json(why, steps))
    else:
        _print(why, show_all, steps)
    return 0 if why.present else 1


def _account_file(directory: Path) -> Path | None:
    """The link's account beside the selection: only a runtime from source has one."""
    account = (directory if directory.is_dir() else directory.parent) / "account.json"
    return account if account.is_file() else None


def _from_account(operator: str, path: Path, show_all: bool, code: bool, output_format: str) -> int:
    from opsieve.explain.why_kept import explain_kept
    from opsieve.operators import OperatorName
    from opsieve.runtimes.source.link.account import account_from_json
    from opsieve.select.store import selection_from_json

    account = account_from_json(path)
    name = OperatorName.parse(operator)
    why, needs = explain_kept(account, selection_from_json(path.with_name("selection.json")), name)
    steps = [
        (str(need.source) if need.source is not None else _RUNTIME, str(need.target), list(account.names(need)))
        for need in (needs if code else ())
    ]
    if output_format == "json":
        print_json(_as_json(why, steps))
    elif why.present:
        _print(why, show_all, steps)
    else:
        print_text(f"{why.operator} is not in this runtime: no model calls it, and nothing that stays can dispatch it.")
        click.echo(f"To add it:\n\n  opsieve build ... --runtime source --op {why.operator}")
    return 0 if why.present else 1


def _with_operators(selection: Selection, operators: frozenset[str]) -> Selection:
    from dataclasses import replace

    from opsieve.operators import OperatorName
    from opsieve.select.selection import SelectedOperator

    return replace(selection, operators=tuple(SelectedOperator(OperatorName.parse(name), ()) for name in operators))


def _code(install: TorchInstall, graph: OpGraph, selection: Selection, why: Why) -> list[tuple[str, str, list[str]]]:
    """For each step of the first chain: from, to, and the functions between."""
    from opsieve.code.elf import ElfFile
    from opsieve.explain.code_path import code_path, node_names
    from opsieve.graph.load import LIBRARY
    from opsieve.graph.scopes import parse_scopes

    elf = ElfFile(install.library(LIBRARY))
    scopes = parse_scopes(selection.scopes)
    chain = why.chains[0].operators
    return [
        (source, target, list(node_names(elf, graph, code_path(graph, source, target, scopes))))
        for source, target in pairwise(chain)
    ]


def _print(why: Why, show_all: bool, steps: list[tuple[str, str, list[str]]]) -> None:
    if not why.present:
        print_text(f"{why.operator} is not in this runtime: no model calls it, and nothing that stays needs it.")
        print_text(f"Adding it would bring {_count(why.cost.operators)} and {_size(why.cost.code_bytes)} of code:")
        click.echo(f"\n  opsieve build ... --op {why.operator}")
        return
    if not why.chains:
        print_text(f"{why.operator} stays because any operator may need it (lazy views, a tensor's own methods).")
    for chain in why.chains if show_all else why.chains[:_SHOWN]:
        _print_chain(chain)
    hidden = len(why.chains) - _SHOWN
    if hidden > 0 and not show_all:
        click.echo(f"... and {hidden} more roots need it; --all shows them.\n")
    if why.any_operator and why.chains:
        print_text("Any operator may need it as well, through lazy views or a tensor's own methods.")
        click.echo()
    for source, target, names in steps:
        click.echo(f"{source} calls {target} through")
        for name in names:
            click.echo(f"  {printable(name)}")
        click.echo()
    print_text(f"Without it, {_count(why.cost.operators)} and {_size(why.cost.code_bytes)} of code would go.")


def _print_chain(chain: Chain) -> None:
    click.echo(_asked_by(chain.asked_by))
    for depth, operator in enumerate(chain.operators):
        click.echo(f"{'  ' * (depth + 1)}-> {operator}")
    click.echo()


def _asked_by(reason: Reason) -> str:
    from opsieve.select.selection import ReasonKind

    match reason.kind:
        case ReasonKind.MODEL:
            return printable(f"{reason.source}: {reason.place}")
        case ReasonKind.OPTION:
            return printable(f"asked for by {reason.source}")
        case _:
            return f"PyTorch itself: {reason.source}"


def _count(operators: Sequence[str]) -> str:
    return f"{len(operators)} operator{'' if len(operators) == 1 else 's'}"


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB" if count >= 100_000 else f"{count / 1e3:.1f} KB"


def _as_json(why: Why, steps: list[tuple[str, str, list[str]]]) -> dict[str, object]:
    return {
        "operator": why.operator,
        "present": why.present,
        "any_operator": why.any_operator,
        "chains": [
            {
                "asked_by": {"kind": str(c.asked_by.kind), "source": c.asked_by.source, "place": c.asked_by.place},
                "operators": list(c.operators),
            }
            for c in why.chains
        ],
        "cost": {"operators": list(why.cost.operators), "code_bytes": why.cost.code_bytes},
        "code": [{"from": source, "to": target, "functions": names} for source, target, names in steps],
    }
