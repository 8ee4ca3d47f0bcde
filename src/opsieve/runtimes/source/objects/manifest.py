"""Which object belongs to which contents: an entry for each combination of headers that a source was compiled with."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opsieve.files import replacing_file
from opsieve.runtimes.source.objects.compiler import Compiler, SearchPath
from opsieve.runtimes.source.objects.files import Files, digest
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.objects.surroundings import Surroundings

FORMAT = 2
"""To be raised whenever the meaning of a key, a state or an entry changes, or how the compiler is called."""

KEPT_ENTRIES = 8
"""Combinations of headers remembered for one source; the newest stay."""

_LARGEST = 64 << 20


class Entry(msgspec.Struct, frozen=True):
    """The states of all files that the compiler read, what `suspicions` told, and the object that came of it."""

    states: dict[str, bytes]
    suspicions: dict[str, str]
    object: str
    size: int


_DECODER = msgspec.msgpack.Decoder(list[Entry])


def job_key(compiler: Compiler, job: CompileJob, search: SearchPath, around: Surroundings) -> str | None:
    """The key of a job before anything is known of its headers; None if the source is not there."""
    source = around.files.facts(job.source_path)
    if source is None:
        return None
    words = (
        *(str(FORMAT), compiler.identity, job.language, job.name, around.name(job.source_path), search.machine),
        *job.language_flags,
    )
    return digest(source.digest, *_named_files(around.files, job), *map(str.encode, words)).hex()


def _named_files(files: Files, job: CompileJob) -> list[bytes]:
    """Contents of files that flags name: profiles, specs, plugins, response files."""
    values = {value for flag in job.language_flags for value in (flag, flag.partition("=")[2], flag.removeprefix("@"))}
    found = (files.facts(value) for value in sorted(values) if value.startswith("/"))
    return [facts.digest for facts in found if facts]


def holds(entry: Entry, around: Surroundings) -> bool:
    """Whether a run of the compiler would read now what it read for this entry."""
    # A thousand headers for each of hundreds of jobs: the usual case, all known and the same, has no loop of ours.
    now = list(map(around.current.get, entry.states))
    if None in now:
        now = [around.state(name) for name in entry.states]
    if now != list(entry.states.values()):
        return False
    return all(around.recheck(key) == found for key, found in entry.suspicions.items())


def observed(key: str, size: int, read: list[str], around: Surroundings) -> Entry:
    """The entry for a compiler run that read these files, the source first."""
    names = list(dict.fromkeys(around.name(path) for path in read))
    states = {name: around.state(name) for name in names}
    suspicions = around.suspicions(names)
    parts = [part for name, state in states.items() for part in (_bytes(name), state)]
    looked = [_bytes(word) for pair in suspicions.items() for word in pair]
    return Entry(states, suspicions, digest(key.encode(), *parts, *looked).hex(), size)


def read_entries(path: Path) -> list[Entry]:
    """The entries of a manifest; none if there is none or it is damaged (the source is then compiled again)."""
    try:
        if path.stat().st_size > _LARGEST:
            return []
        return _DECODER.decode(path.read_bytes())
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []


def add_entry(path: Path, entry: Entry) -> None:
    """Put an entry before those that a manifest has."""
    others = [other for other in read_entries(path) if other.object != entry.object]
    content = msgspec.msgpack.encode([entry, *others][:KEPT_ENTRIES])
    with replacing_file(path, force=True) as temporary:
        temporary.write_bytes(content)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
