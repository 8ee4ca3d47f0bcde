"""Remembering which headers an application needs: asking the compiler takes seconds, and a link takes less."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from opsieve.files import replacing_file
from opsieve.runtimes.source.objects import CompileJob, Compiler
from opsieve.runtimes.source.output.headers import HeaderSet, find_headers


class _Record(msgspec.Struct, frozen=True):
    asked: tuple[str, ...]
    files: dict[str, str]
    others: dict[str, str]
    macros: tuple[str, ...]


def kept_headers(compiler: Compiler, compile: CompileJob, asked: Sequence[str], record: Path | None) -> HeaderSet:
    """As `find_headers`, but remembered in the file `record` if one is given.

    The record is good for as long as its name stands for one tree, compiler and set of flags.
    """
    if record is None:
        return find_headers(compiler, compile, asked)
    known = _read(record, asked)
    if known is not None:
        return known
    found = find_headers(compiler, compile, asked)
    files = {name: str(path) for name, path in found.files.items()}
    with replacing_file(record, force=True) as temporary:
        temporary.write_bytes(msgspec.json.encode(_Record(tuple(asked), files, dict(found.others), found.macros)))
    return found


def _read(record: Path, asked: Sequence[str]) -> HeaderSet | None:
    """None if there is no record, or if it is damaged, for other headers, or tells of files that are gone."""
    try:
        known = msgspec.json.decode(record.read_bytes(), type=_Record)
    except (OSError, msgspec.DecodeError):
        return None
    files = {name: Path(path) for name, path in known.files.items()}
    if known.asked != tuple(asked) or not all(path.is_file() for path in files.values()):
        return None
    return HeaderSet(files, known.others, known.macros)
