"""One link, and what it found missing."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from opsieve.errors import BuildFailed
from opsieve.runtimes.source.link.linker import Linker
from opsieve.runtimes.source.objects.compiler import Compiler, compiler_environment

_UNDEFINED = re.compile(r"error: undefined (?:hidden |protected |internal )?(?:symbol|reference): (\S+)")  # lld
_REFERENCED = re.compile(r">>> +(?:referenced by )?(\S.*)")
_UNDEFINED_GNU = re.compile(r"^(?:\S*ld\S*: )?(.*?): (?:error: )?undefined reference to [`'](.+)'$")  # also gold
_HIDDEN_GNU = re.compile(r"(?:hidden|internal|protected) symbol `(.+?)' (?:isn't defined|in .* is referenced)")
_MORE = re.compile(r"more undefined references to `(.+)' follow")
_TIMEOUT = 600


@dataclass(frozen=True)
class LinkInput:
    """What is linked: in this order, roots first to be searched for."""

    objects: tuple[Path, ...]
    roots: tuple[str, ...]
    """Symbols to keep whatever refers to them."""

    libraries: tuple[str, ...] = ()
    """Flags such as `-lcpuinfo`."""

    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class LinkOutcome:
    """Whether it linked; if not, every symbol that live code misses, and who refers to it."""

    undefined: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing."""
        return not self.undefined


def link(compiler: Compiler, linker: Linker, given: LinkInput, output: Path) -> LinkOutcome:
    """Link to `output`. Raises BuildFailed for anything that is wrong but an undefined symbol."""
    arguments = output.with_name(f"{output.name}.rsp")
    arguments.write_text(response_file(given), encoding="utf-8")
    command = [*compiler.command, *linker.flags, *given.flags, "-o", str(output), f"@{arguments}", *given.libraries]
    done = subprocess.run(
        command, capture_output=True, env=compiler_environment(output.parent), timeout=_TIMEOUT, check=False
    )
    said = done.stderr.decode(errors="replace")
    if done.returncode == 0:
        return LinkOutcome()
    undefined = parse_undefined(said)
    if not undefined:
        wrong = next((line for line in said.splitlines() if "error" in line), said.strip()[:500] or "no message")
        raise BuildFailed(f"the link failed: {wrong}", where=output, remedy="opsieve doctor")
    return LinkOutcome(undefined)


def response_file(given: LinkInput) -> str:
    """The roots and objects as the compiler driver reads them from a file."""
    lines = [f"-Wl,-u,{symbol}" for symbol in given.roots]
    return "\n".join([*lines, *(_quoted(str(path)) for path in given.objects)]) + "\n"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse_undefined(said: str) -> dict[str, tuple[str, ...]]:
    """Symbol -> who refers to it, from what lld, mold or GNU ld said with --no-demangle."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in said.splitlines():
        if (lld := _UNDEFINED.search(line)) is not None:
            current = found.setdefault(lld[1], [])
        elif line.startswith(">>>") and current is not None:
            reference = _REFERENCED.match(line)
            if reference is not None:
                current.append(reference[1].strip())
        elif (gnu := _UNDEFINED_GNU.match(line)) is not None:
            found.setdefault(gnu[2], []).append(gnu[1])
        elif (other := _MORE.search(line) or _HIDDEN_GNU.search(line)) is not None:
            found.setdefault(other[1], [])
    return {symbol: tuple(dict.fromkeys(references)) for symbol, references in found.items()}
