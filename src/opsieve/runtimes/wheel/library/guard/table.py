"""What the guard knows of a library: the names of its removed functions, in a form a signal handler can search.

The names of 200,000 functions are 27 MB of text. They are deflated in blocks of a few hundred functions, with the
first address of each block beside it, so that the handler inflates one block only (guard.c, find_removed).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files

from pycxxfilt import itanium_demangle

from opsieve.code.elf import Int64s

STATE_SIZE = 72 * 1024
"""Bytes of writable memory that the guard needs (`struct state`)."""

_BLOCK_SIZE = 60_000
"""Bytes of a block before it is deflated, about; they must stay below 64 KB (TEXT in guard.c)."""

_LONGEST_NAME = 200
"""Characters; the names of template instances run to thousands and say little after the first hundred."""

_LONGEST_OPERATOR = 400
_MAGIC = b"\0opsiev1"


@dataclass(frozen=True, slots=True, eq=False)
class RemovedFunctions:
    """The functions that were removed, as parallel arrays in address order."""

    starts: Int64s
    ends: Int64s
    names: Sequence[bytes]
    """Symbol names as the linker knows them (mangled)."""

    operators: Int64s
    """Index into `operator_names`, -1 where no operator is known."""

    operator_names: tuple[str, ...]
    advice: str
    """What to do about a function without an operator, in one line."""


@dataclass(frozen=True, slots=True)
class Header:
    """The fields of `struct header` in guard.c that follow its magic number, in their order.

    Everything is a distance from the header; 0 means that there is none.
    """

    init: int
    fini: int
    old_init: int = 0
    old_fini: int = 0
    image: int = 0
    phdrs: int = 0
    phdr_count: int = 0
    index: int = 0
    index_count: int = 0
    symbols: int = 0
    strings: int = 0
    symbol_count: int = 0
    library: int = 0
    advice: int = 0
    state: int = 0

    def pack(self) -> bytes:
        """The header as it stands in memory."""
        return _MAGIC + struct.pack(f"<{len(fields(self))}q", *(getattr(self, f.name) for f in fields(self)))


def guard_code() -> bytes:
    """The machine code of the guard; it begins with its header."""
    code = files(__package__).joinpath("guard_x86_64.bin").read_bytes()
    if not code.startswith(_MAGIC):
        raise RuntimeError("guard_x86_64.bin does not belong to this version of opsieve; install it again")
    return code


def entry_points(code: bytes) -> Header:
    """The header of the guard as it was compiled: only its own entry points are set."""
    return Header(*struct.unpack_from("<2q", code, len(_MAGIC)))


@dataclass(frozen=True, slots=True)
class NameTable:
    """The index and the blocks, one behind the other, as the guard reads them."""

    count: int
    contents: bytes


def make_name_table(removed: RemovedFunctions) -> NameTable:
    """Deflate the names. Addresses must be below 4 GB, as in every library whose parts can call each other."""
    blocks = list(_blocks(removed))
    index_size = 16 * len(blocks)
    index, offset = bytearray(), index_size
    for first, data in blocks:
        index += struct.pack("<IIQ", first, len(data), offset)
        offset += len(data)
    return NameTable(len(blocks), bytes(index) + b"".join(data for _, data in blocks))


def _blocks(removed: RemovedFunctions) -> Iterator[tuple[int, bytes]]:
    """Each block: the address of its first function, and its deflated contents."""
    columns = (removed.starts.tolist(), removed.ends.tolist(), removed.names, removed.operators.tolist())
    first, behind, block = 0, 0, bytearray()
    for start, end, name, operator in zip(*columns, strict=True):
        if len(block) > _BLOCK_SIZE:
            yield first, _deflate(block)
            block.clear()
        if not block:
            first = behind = start
        block += _number(start - behind) + _number(end - start) + _text(name, removed, operator)
        behind = end
    if block:
        yield first, _deflate(block)


def _number(value: int) -> bytes:
    """LEB128."""
    if value < 0x80:
        return bytes((value,))
    low = bytearray()
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*low, value))


def _text(name: bytes, removed: RemovedFunctions, operator: int) -> bytes:
    of_operator = removed.operator_names[operator][:_LONGEST_OPERATOR] if operator >= 0 else ""
    return f"{readable(name)[:_LONGEST_NAME]}\0{of_operator}\0".encode("utf-8", "replace")


def _deflate(block: bytes | bytearray) -> bytes:
    compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
    return compressor.compress(block) + compressor.flush()


def readable(name: bytes) -> str:
    """A symbol name as C++ programmers write it; as it is where it is none, or the demangler does not know it."""
    # GCC's parts of functions (.cold, .part.0, .isra.0) are not in the demangler's grammar.
    symbol, dot, part = name.decode("utf-8", "replace").partition(".")
    if not symbol.startswith("_Z"):
        return symbol + dot + part
    try:
        return (itanium_demangle(symbol) or symbol) + dot + part
    except ValueError:
        return symbol + dot + part
