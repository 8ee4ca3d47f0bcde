"""A static library of exactly the objects that were linked."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from opsieve.errors import BuildFailed, MissingInstallation
from opsieve.runtimes.source.objects import Compiler

_SECONDS = 300


def binary_tool(compiler: Compiler, name: str) -> str:
    """The `ar` or `strip` that belongs to a compiler, which for a cross compiler is not the machine's own."""
    done = subprocess.run(
        [*compiler.command, f"-print-prog-name={name}"], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    return done.stdout.strip() or name


def write_archive(compiler: Compiler, objects: Mapping[str, Path], output: Path) -> None:
    """Write a library with one member per source, named after it. The same objects give the same bytes.

    Raises BuildFailed when `ar` fails, MissingInstallation when there is none.
    """
    with tempfile.TemporaryDirectory(prefix="opsieve-ar-", dir=output.parent) as folder:
        members = []
        for name, path in objects.items():
            member = Path(folder) / f"{name.replace('/', '__')}.o"
            member.symlink_to(path.resolve())
            members.append(member.name)
        # A list in a file: hundreds of long names are more than some systems take on a command line.
        listed = Path(folder) / "members"
        listed.write_text("".join(f'"{_escaped(member)}"\n' for member in members), encoding="utf-8")
        output.unlink(missing_ok=True)
        run_tool([binary_tool(compiler, "ar"), "rcsD", str(output.resolve()), "@members"], Path(folder), output)


def strip(compiler: Compiler, program: Path) -> None:
    """Remove the symbols that a program does not need to run. Raises as `write_archive` does."""
    run_tool([binary_tool(compiler, "strip"), "--strip-all", str(program.resolve())], program.parent, program)


def run_tool(command: list[str], folder: Path, output: Path) -> None:
    """Run a program of the binutils within `folder`. Raises BuildFailed or MissingInstallation, about `output`."""
    try:
        done = subprocess.run(
            command, capture_output=True, cwd=folder, timeout=_SECONDS, stdin=subprocess.DEVNULL, check=False
        )
    except FileNotFoundError as error:
        raise MissingInstallation(f"there is no {command[0]}", remedy="apt-get install binutils") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildFailed(f"{Path(command[0]).name} does not run: {error}", where=output) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuildFailed(f"{Path(command[0]).name} failed: {said[0] if said else 'no message'}", where=output)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
