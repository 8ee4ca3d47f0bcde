"""What a runtime from source can load and run beside its operators: written into its folder for `opsieve check`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.options import Interpreter
from opsieve.runtimes.source.wanted import Policy
from opsieve.runtimes.source.workspace import Workspace

CAPABILITIES = "capabilities.json"
"""The name of the file in the output folder."""

SCHEMA = "opsieve-capabilities-1"

_VERSIONS_FILE = "caffe2/serialize/versions.h"
_VERSION = re.compile(
    r"\bconstexpr\s+uint64_t\s+k(Min|Max)Supported(Bytecode|FileFormat)Version\s*=\s*(0x[\da-fA-F]+|\d+)"
)
_DTYPE = re.compile(r"ScalarType::(\w+)")
_WORD = re.compile(r'"([\w.]+)"')
_MAX_SIZE = 16 << 20

Range = tuple[int, int]


class Capabilities(msgspec.Struct, frozen=True):
    """Ranges are (oldest, newest); None stands for what is not known."""

    schema: str
    version: str
    """Of PyTorch."""

    interpreter: Interpreter
    policy: Policy
    bytecode: Range | None
    """Versions of lite-interpreter models that it loads."""

    file_format: Range | None
    """Versions of TorchScript archives that it loads."""

    dtypes: tuple[str, ...] | None
    """Names of c10::ScalarType that some kernel keeps; None for all."""

    class_words: tuple[str, ...]
    """Every quoted word of the linked sources that register custom classes. The name of a class that is there is one of
    them or ends with one: some names are put together, as in `"Conv" + std::to_string(2) + "dPackedParamsBase"`."""

    def may_have_class(self, name: str) -> bool:
        """Whether a custom class, by its name without namespaces, may be there."""
        return any(name == word or (len(word) > 3 and name.endswith(word)) for word in self.class_words)


def capabilities_of(workspace: Workspace, policy: Policy, linked: Iterable[str]) -> Capabilities:
    """The capabilities of a runtime that was linked from these sources of a workspace."""
    options = workspace.options
    ranges = _ranges(workspace.tree.root / _VERSIONS_FILE)
    return Capabilities(
        schema=SCHEMA,
        version=workspace.tree.version,
        interpreter=options.interpreter,
        policy=policy,
        bytecode=ranges.get("Bytecode"),
        file_format=ranges.get("FileFormat"),
        dtypes=tuple(sorted(set(_DTYPE.findall(options.dtype_header)))) if options.dtype_header else None,
        class_words=tuple(sorted(_class_words(workspace, linked))),
    )


def _ranges(file: Path) -> dict[str, Range]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    found: dict[str, dict[str, int]] = {}
    for end, kind, number in _VERSION.findall(text):
        found.setdefault(kind, {})[end] = int(number, 0)
    return {kind: (ends["Min"], ends["Max"]) for kind, ends in found.items() if len(ends) == 2}


def _class_words(workspace: Workspace, linked: Iterable[str]) -> set[str]:
    words: set[str] = set()
    for name in linked:
        path = workspace.sources.get(name)
        text = path.read_text(encoding="utf-8", errors="replace") if path else ""
        if "class_<" in text:
            words.update(_WORD.findall(text))
    return words


def capabilities_to_json(capabilities: Capabilities) -> bytes:
    """As indented JSON; the same value gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(capabilities), indent=1) + b"\n"


def capabilities_from_json(path: Path) -> Capabilities:
    """Read what `capabilities_to_json` wrote. Raises InvalidFile for anything else."""
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise InvalidFile("the file is too large", where=path, expected=f"{_MAX_SIZE} bytes or less")
        found = msgspec.json.decode(path.read_bytes(), type=Capabilities)
    except OSError as error:
        raise InvalidFile(f"cannot read what the runtime can do: {error.strerror}", where=path) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(f"this does not say what a runtime can do: {error}", where=path) from error
    if found.schema != SCHEMA:
        raise InvalidFile(f"unknown schema {found.schema[:80]!r}", where=path, expected=SCHEMA)
    return found
