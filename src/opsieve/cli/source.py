"""`opsieve source`: a PyTorch source tree to build from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from opsieve.cli.output import format_option, megabytes, print_json, progress

if TYPE_CHECKING:
    from opsieve.runtimes.source.debian_source import Got


@click.group("source")
def command() -> None:
    """A PyTorch source tree, for `opsieve build --runtime source`."""


@command.command("get")
@click.argument("version")
@click.option("--to", "target", type=click.Path(path_type=Path), required=True, metavar="DIR", help="Where to put it.")
@click.option("--force", is_flag=True, help="Replace a tree in DIR that an earlier `opsieve source get` put there.")
@format_option
def get(version: str, target: Path, force: bool, output_format: str) -> None:
    """Get the source of PyTorch VERSION, such as 2.6.0, from Debian's source package.

    The package archive is the one that this machine's apt uses; nothing of the system is changed, and no root is
    needed. The archive is checked against the signed index. Without apt, use any clone of PyTorch instead: the error
    says how.
    """
    from opsieve.runtimes.source.debian_source import get_source

    with progress() as bars:
        got = get_source(version, target, force=force, progress=bars)
    if output_format == "json":
        print_json(_as_json(got))
    elif got.package is None:
        click.echo(f"PyTorch {got.tree.version} is in {got.tree.root} already; nothing to do.")
    else:
        click.echo(
            f"PyTorch {got.tree.version} is in {got.tree.root}, from {got.package} ({megabytes(got.downloaded)} MB).\n"
            f"What building it needs:\n\n  opsieve doctor --source {target}"
        )


def _as_json(got: Got) -> dict[str, object]:
    return {
        "version": got.tree.version,
        "folder": str(got.tree.root),
        "package": got.package,
        "downloaded_bytes": got.downloaded,
    }
