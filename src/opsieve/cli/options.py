"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opsieve.models.needs import ModelNeeds
    from opsieve.progress import Progress
    from opsieve.select.choose import ExtraOperator

_Command = Callable[..., Any]

SCOPES = ("inference", "quantized", "sparse", "mkldnn", "nested", "autograd", "all")
"""The values of opsieve.graph.scopes.Scope, spelled out because importing it takes longer than `--help` may."""

python_option = click.option(
    "--python",
    type=click.Path(path_type=Path),
    help="The interpreter whose PyTorch to use, by default the one that runs opsieve.",
)
scope_option = click.option(
    "--scope",
    "scopes",
    type=click.Choice(SCOPES),
    multiple=True,
    help="What the runtime must be able to do; may be given several times. `inference` is always in.",
)


def operator_options(command: _Command) -> _Command:
    """`--op` and `--ops-from`, as arguments `ops` and `ops_from`."""
    one = click.option(
        "--op",
        "ops",
        multiple=True,
        metavar="OPERATOR",
        help="Keep this operator too: ns::name.overload, or ns::name for all overloads. May be given several times.",
    )
    many = click.option(
        "--ops-from",
        type=click.Path(path_type=Path),
        multiple=True,
        metavar="FILE",
        help="Keep the operators that this file lists, one a line.",
    )
    return one(many(command))


def extra_operators(ops: Sequence[str], ops_from: Sequence[Path]) -> list[ExtraOperator]:
    """The operators of `--op` and `--ops-from`."""
    from opsieve.select.operator_lists import from_file, from_option

    return [*map(from_option, ops), *(extra for path in ops_from for extra in from_file(path))]


def read_needs(models: Sequence[Path], python: Path | None, progress: Progress) -> list[ModelNeeds]:
    """What the models need, overloads resolved by the PyTorch of `python`."""
    from opsieve.installed import find_torch
    from opsieve.models import TorchOverloads, read_models

    if not models:
        return []
    return list(read_models(models, overloads=TorchOverloads(find_torch(python)), progress=progress))
