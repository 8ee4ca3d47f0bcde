"""`opsieve runtime`: hand on what was compiled from source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from opsieve.cli.output import format_option, megabytes, print_json, printable, progress
from opsieve.cli.source_options import SourceOptions, source_options

if TYPE_CHECKING:
    from opsieve.runtimes.source.packing import Packed, Unpacked


@click.group("runtime")
def command() -> None:
    """Compile once, and hand it on: what `opsieve build --runtime source --prepare` compiled, as one file."""


@command.command("pack")
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace ARCHIVE if it is there.")
@source_options
@format_option
def pack_command(archive: Path, force: bool, output_format: str, **source: Any) -> None:  # noqa: ANN401 - click gives them by name
    """Write what was prepared for a source tree and these options to the file ARCHIVE (a zstd-compressed tar).

    It holds all that a build needs but the compiler and the system's own libraries: objects, generated code, headers,
    and the files of the source tree that builds read.
    """
    options = SourceOptions(**source)
    if options.source is None:
        raise click.UsageError("say which PyTorch was prepared with --source DIR")
    from opsieve.errors import InvalidFile
    from opsieve.files import refuse_existing
    from opsieve.runtimes.source.objects import Compiler
    from opsieve.runtimes.source.packing import pack
    from opsieve.runtimes.source.prepared import load_prepared
    from opsieve.runtimes.source.tree import SourceTree
    from opsieve.runtimes.source.workspace import open_workspace

    refuse_existing(archive, force)
    tree, compiler = SourceTree.open(options.source), Compiler.find(options.compiler)
    with progress() as bars:
        workspace = open_workspace(tree, options.build_options(), compiler, bars)
        prepared = load_prepared(workspace)
        if prepared is None:
            raise InvalidFile(
                "this tree is not compiled for these options",
                where=options.source,
                remedy=f"opsieve build --runtime source --source {options.source} --prepare, with the same options",
            )
        packed = pack(workspace, prepared, compiler, archive, force=force, progress=bars)
    if output_format == "json":
        print_json(_packed_json(packed))
    else:
        click.echo(
            f"{packed.files} files ({megabytes(packed.unpacked)} MB) are in {archive} ({megabytes(packed.size)} MB).\n"
            f"On another machine with the same compiler:\n\n  opsieve runtime unpack {archive.name}"
        )


@command.command("unpack")
@click.argument("archive", type=click.Path(path_type=Path))
@click.option("--compiler", metavar="NAME", help="The compiler for later builds; it must be the one of ARCHIVE.")
@format_option
def unpack_command(archive: Path, compiler: str | None, output_format: str) -> None:
    """Put what ARCHIVE holds into your cache, so that builds from source compile nothing.

    Every file is checked against the sum that the archive states. Unpack only what you would also run: a checksum
    tells damage, not intent.
    """
    from opsieve.runtimes.source.objects import Compiler
    from opsieve.runtimes.source.packing import unpack_runtime

    with progress() as bars:
        unpacked = unpack_runtime(archive, Compiler.find(compiler), bars)
    if output_format == "json":
        print_json(_unpacked_json(unpacked))
        return
    state = "was there already" if unpacked.already else "is unpacked"
    click.echo(
        f"PyTorch {unpacked.tree.version}, compiled by {printable(unpacked.manifest.compiler.description)}, {state}.\n"
        f"Build with\n\n  opsieve build MODEL --runtime source --source {unpacked.tree.root} -o DIR\n\n"
        f"and the options it was made with:\n"
    )
    for name, value in _options(unpacked).items():
        click.echo(f"  {name} {printable(value)}")


def _packed_json(packed: Packed) -> dict[str, object]:
    return {
        "path": str(packed.path),
        "bytes": packed.size,
        "files": packed.files,
        "unpacked_bytes": packed.unpacked,
    }


def _unpacked_json(unpacked: Unpacked) -> dict[str, object]:
    return {
        "version": unpacked.tree.version,
        "source": str(unpacked.tree.root),
        "compiler": unpacked.manifest.compiler.description,
        "options": _options(unpacked),
        "already": unpacked.already,
    }


def _options(unpacked: Unpacked) -> dict[str, str]:
    options = unpacked.manifest.options
    return {
        "--interpreter": options.interpreter,
        "--cpu": options.cpu,
        "--blas": options.blas,
        "--threads": options.threads,
        "--quantized-engine": options.quantized_engine,
        "--optimise": options.optimisation.removeprefix("-O"),
        **({"--cxx-flag": " ".join(options.extra_flags)} if options.extra_flags else {}),
        **({"--dtypes": "(as it was packed)"} if options.dtype_header else {}),
    }
