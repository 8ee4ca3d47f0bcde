"""The header that reads flatbuffer models, made anew where the tree's own does not fit the library that is here.

PyTorch's tree has this header as `flatc` of one release wrote it, and it compiles with the headers of that release only
(since flatbuffers 22 it says so; before, it calls functions whose arguments changed). A tree with its submodules has
those headers. Elsewhere the system's `flatc`, if it is of the same release as the system's headers, writes the header
anew from the tree's schema, with the options of the tree's `tools/gen_flatbuffers.sh`.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from pathlib import Path

from filelock import FileLock

from opsieve.errors import InvalidSourceTree
from opsieve.files import replacing_folder
from opsieve.runtimes.source.doctor_probes import FoundHeader, Header, Tool, find_header, flatc
from opsieve.runtimes.source.objects.compiler import Compiler

SCHEMA = "torch/csrc/jit/serialization/mobile_bytecode.fbs"
SCHEMA_HEADER = "torch/csrc/jit/serialization/mobile_bytecode_generated.h"
IN_TREE = "third_party/flatbuffers/include"

LIBRARY = Header(
    "flatbuffers/flatbuffers.h",
    "FLATBUFFERS_VERSION_MAJOR.FLATBUFFERS_VERSION_MINOR.FLATBUFFERS_VERSION_REVISION",
)
"""The library is this header and those that it includes."""

_OPTIONS = ("--cpp", "--gen-mutable", "--scoped-enums")
_SECONDS = 60
_STATED = re.compile(r"FLATBUFFERS_VERSION_(?:MAJOR|MINOR|REVISION) == (\d+)")
_HEAD_BYTES = 4096

_MISSING = """\
// Written by opsieve. There is no such header: it ends the compilation at once, and the message names what is missing.
#include <{what}>
"""


class Remedy(Enum):
    """What is to be done about the tree's header."""

    NONE = "nothing"
    """It fits, or there are no headers of flatbuffers at all."""

    GENERATE = "generate"
    MISSING = "missing"
    """It does not fit, and nothing here can write one that does."""


def stated_version(root: Path) -> str:
    """The release that the tree's header asks for, such as `23.3.3`; empty if there is no header or it says nothing."""
    try:
        with (root / SCHEMA_HEADER).open(encoding="utf-8", errors="replace") as stream:
            numbers = _STATED.findall(stream.read(_HEAD_BYTES))
    except OSError:
        return ""
    return ".".join(numbers) if len(numbers) == 3 else ""


def remedy(root: Path, library: FoundHeader | None, tool: Tool | None) -> Remedy:
    """What has to be done for a tree, the headers that the compiler finds for it, and the `flatc` that is here."""
    if library is None or _fits(root, library):
        return Remedy.NONE
    can_generate = tool is not None and tool.version == library.version and (root / SCHEMA).is_file()
    return Remedy.GENERATE if can_generate else Remedy.MISSING


def find_library(root: Path | None, compiler: Compiler | None) -> FoundHeader | None:
    """The headers of flatbuffers: the tree's own come first."""
    own = root / IN_TREE if root else None
    return find_header(LIBRARY, compiler, [own] if own and own.is_dir() else [])


def flatc_places() -> Iterator[str]:
    """The files that are, or would be, the `flatc` that is found."""
    for folder in os.get_exec_path():
        if folder.startswith("/"):
            yield f"{folder}/flatc"


@dataclass(frozen=True)
class SchemaHeader:
    """The include folder with the header for one tree, made below `folder` when it is first asked for."""

    root: Path
    """Of the tree."""

    compiler: Compiler
    flags: tuple[str, ...]
    """With which the compiler looks for headers."""

    folder: Path

    def is_included_by(self, source: Path) -> bool:
        """Whether a source asks for the header."""
        try:
            return SCHEMA_HEADER.encode() in source.read_bytes()
        except OSError:
            return False

    @cached_property
    def include(self) -> tuple[Path, ...]:
        """To be searched before the tree; empty where the tree's own header is the right one.

        Raises InvalidSourceTree when `flatc` fails.
        """
        compiler = replace(self.compiler, arguments=(*self.compiler.arguments, *self.flags))
        library, tool = find_library(self.root, compiler), flatc()
        what = remedy(self.root, library, tool)
        if library is None or what is Remedy.NONE:
            return ()
        return (self._made(tool if what is Remedy.GENERATE else None, library.version),)

    def _made(self, tool: Tool | None, version: str) -> Path:
        schema = self.root / SCHEMA
        text = schema.read_bytes() if tool else b""
        digest = hashlib.blake2b(b"\0".join((text, version.encode(), *map(str.encode, _OPTIONS))), digest_size=10)
        folder = self.folder / f"flatbuffers-{digest.hexdigest()}"
        with FileLock(f"{folder}.lock"):
            if not folder.is_dir():
                with replacing_folder(folder) as temporary:
                    target = temporary / SCHEMA_HEADER
                    target.parent.mkdir(parents=True)
                    if tool:
                        _generate(tool, schema, target)
                    else:
                        target.write_text(_MISSING.format(what=f"flatc {version}".strip()), encoding="utf-8")
        return folder


def _fits(root: Path, library: FoundHeader) -> bool:
    """Whether the tree's header was made for the library: it says so, or both come with the tree."""
    if not (root / SCHEMA_HEADER).is_file():
        return False
    return library.path.is_relative_to(root / IN_TREE) or stated_version(root) == library.version != ""


def _generate(tool: Tool, schema: Path, target: Path) -> None:
    command = [str(tool.path), *_OPTIONS, "-o", str(target.parent), str(schema)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
        if done.returncode == 0 and target.is_file():
            return
        said = (done.stderr + done.stdout).strip() or f"it ended with status {done.returncode}"
    except (OSError, subprocess.TimeoutExpired) as error:
        said = str(error)
    raise InvalidSourceTree(
        f"flatc {tool.version} failed: {said.splitlines()[0][:200]}",
        where=schema,
        expected=f"that it writes {target.name}",
        remedy="install another flatc and the headers of the same release, or neither",
    )
