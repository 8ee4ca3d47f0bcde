"""What the compiler said when it failed, and what kind of failure that is."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PLACE = re.compile(r"^(?P<where>\S.*?:\d+)(?::\d+)?: ")
_ERROR = re.compile(r"\berror: |Error: |undefined|Assembler messages")
_FULL = re.compile(r"No space left on device|Disk quota exceeded")
_MEMORY = re.compile(
    r"Killed signal terminated|out of memory|virtual memory exhausted|Cannot allocate memory|bad_alloc"
)

_NO_HEADER = re.compile(r"(?:(?P<plain>[^:]+): No such file or directory|'(?P<quoted>[^']+)' file not found)")
"""What g++ and clang++ say of a header that is not there."""

SHOWN_LINES = 5
"""Error lines kept of a failure: the first ones are the cause, the rest mostly follows from them."""

_LONGEST_LINE = 500
_KEPT_OUTPUT = 1 << 20


@dataclass(frozen=True)
class CompileFailure:
    """Why one job failed: its first error lines, file:line if the compiler told, and the call that failed."""

    name: str
    errors: tuple[str, ...]
    where: str | None = None
    command: tuple[str, ...] = ()


def failure_of(name: str, said: bytes, status: int, command: tuple[str, ...] = ()) -> CompileFailure:
    """The failure that a compiler's messages tell of; `status` is its exit status, negative for a signal."""
    lines = _lines(said)
    errors = [line for line in lines if _ERROR.search(line)] or lines[-SHOWN_LINES:]
    places = (_PLACE.match(line) for line in errors)
    where = next((place["where"] for place in places if place), None)
    told = tuple(line[:_LONGEST_LINE] for line in errors[:SHOWN_LINES])
    return CompileFailure(name, told or (f"the compiler ended with status {status} and said nothing",), where, command)


def is_disk_full(said: bytes) -> bool:
    """Whether the compiler failed because nothing can be written."""
    return any(_FULL.search(line) for line in _lines(said) if _is_about_compiler(line))


def is_out_of_memory(said: bytes, status: int) -> bool:
    """Whether the compiler was killed, as the system does when memory is short, or got no memory."""
    return status == -9 or any(_MEMORY.search(line) for line in _lines(said) if _is_about_compiler(line))


def _is_about_compiler(line: str) -> bool:
    """Neither a message about a place in the source nor a line of the source shown below it."""
    return not line.startswith((" ", "\t")) and not _PLACE.match(line)


def _lines(said: bytes) -> list[str]:
    return said[:_KEPT_OUTPUT].decode(errors="replace").splitlines()


def lacks_header(failure: CompileFailure) -> bool:
    """Whether a source failed because a header is not installed."""
    return any(_NO_HEADER.search(line) for line in failure.errors)


def cause(message: str) -> str:
    """A compiler's message without the place and in plain words: `fmt/core.h is not installed`."""
    words = message.rpartition("error: ")[2].strip()
    missing = _NO_HEADER.fullmatch(words)
    return f"{missing['plain'] or missing['quoted']} is not installed" if missing else words
