"""`opsieve ops`: the operators that models call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click

from opsieve.cli.output import format_option, print_json, print_table, printable, progress
from opsieve.errors import MissingInstallation
from opsieve.installed import find_torch
from opsieve.models import ModelNeeds, OverloadResolver, Reach, RootOperator, TorchOverloads, read_models

_NOT_ASKED = "TorchScript names no overloads, and PyTorch was not asked: `.*` stands for all overloads of a name."


@click.command("ops")
@click.argument("models", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="MODEL...")
@click.option("--by-method", is_flag=True, help="List the operators of each method, with their places.")
@click.option(
    "--reach",
    type=click.Choice([*map(str, Reach), "all"]),
    default="all",
    show_default=True,
    help="Only operators with kernels (dispatcher), or only those the interpreter runs itself.",
)
@click.option("--no-torch", is_flag=True, help="Do not use PyTorch to find overloads, even if it is installed.")
@click.option("--python", type=click.Path(path_type=Path), help="The interpreter whose PyTorch to use.")
@format_option
def command(
    models: tuple[Path, ...], by_method: bool, reach: str, no_torch: bool, python: Path | None, output_format: str
) -> None:
    """Print the operators that each MODEL calls, in all its methods.

    Reads TorchScript (.pt), lite-interpreter (.ptl, zip or flatbuffer) and torch.export (.pt2) files,
    without running them and without reading their weights.
    """
    with progress() as bars:
        needs = read_models(models, overloads=_overloads(no_torch, python), progress=bars)
    if output_format == "json":
        print_json({"models": [_as_json(model, reach) for model in needs]})
        return
    for model in needs:
        _print_model(model, reach, by_method)


def _overloads(no_torch: bool, python: Path | None) -> OverloadResolver | None:
    if no_torch:
        return None
    try:
        return TorchOverloads(find_torch(python))
    except MissingInstallation:
        if python is not None:
            raise
        return None


def _selected(model: ModelNeeds, reach: str) -> list[RootOperator]:
    """The dispatcher's operators first, because those are what can be pruned."""
    return sorted(
        (root for root in model.roots if reach in ("all", root.reach)), key=lambda root: (root.reach, root.name)
    )


def _print_model(model: ModelNeeds, reach: str, by_method: bool) -> None:
    roots = _selected(model, reach)
    count = sum(root.reach is Reach.DISPATCHER for root in roots)
    click.echo(f"{printable(model.path)}: {model.format}, {len(model.methods)} methods")
    click.echo(f"{count} operators of the dispatcher, {len(roots) - count} of the interpreter only\n")
    if by_method:
        _print_by_method(roots)
    else:
        rows = ((_spelled(root), root.reach, str(len(root.uses)), str(_methods(root))) for root in roots)
        print_table(("operator", "reach", "uses", "methods"), rows, right=("uses", "methods"))
    if model.custom_classes:
        click.echo("\nC++ classes: " + ", ".join(map(printable, model.custom_classes)))
    for note in _notes(model, roots):
        click.echo(f"\nnote: {printable(note)}")
    click.echo()


def _print_by_method(roots: Iterable[RootOperator]) -> None:
    methods: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for root in roots:
        for use in root.uses:
            methods[use.method].append((_spelled(root), root.reach, printable(use.place)))
    for method, rows in sorted(methods.items()):
        print_table(("operator", "reach", "place"), rows, title=printable(method))
        click.echo()


def _spelled(root: RootOperator) -> str:
    return f"{root.name.base_name}.*" if root.all_overloads else str(root.name)


def _methods(root: RootOperator) -> int:
    return len({use.method for use in root.uses})


def _notes(model: ModelNeeds, roots: Iterable[RootOperator]) -> Iterable[str]:
    if not model.notes and any(root.all_overloads for root in roots):
        yield _NOT_ASKED
    yield from model.notes


def _as_json(model: ModelNeeds, reach: str) -> dict[str, object]:
    return {
        "path": model.path,
        "format": model.format,
        "fingerprint": model.fingerprint,
        "methods": list(model.methods),
        "custom_classes": list(model.custom_classes),
        "notes": list(model.notes),
        "operators": [
            {
                "name": root.name.base_name,
                "overload": None if root.all_overloads else root.name.overload,
                "all_overloads": root.all_overloads,
                "reach": str(root.reach),
                "uses": [{"method": use.method, "place": use.place} for use in root.uses],
            }
            for root in sorted(_selected(model, reach), key=lambda root: root.name)
        ],
    }
