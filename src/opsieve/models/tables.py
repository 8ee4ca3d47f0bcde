"""A reader of FlatBuffers tables that checks every offset, written against the format's internals page.

The Python package `flatbuffers` has no verifier: a wrong offset there is a traceback, or another table's bytes.
Offsets: a table starts with the signed distance back to its vtable; a vtable holds its own size, the size of
the table and one 16-bit field offset per field (0: absent); strings and vectors start with their 32-bit length.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from mmap import mmap

from opsieve.errors import InvalidModel

MAX_VISITS = 5_000_000
"""Items and string bytes read in all. Offsets may lead many times to the same place, so the size is no bound."""


@dataclass(slots=True)
class Buffer:
    """Bytes of a file, in memory or mapped."""

    data: bytes | mmap
    where: str
    visits_left: int = MAX_VISITS

    def number(self, layout: str, position: int) -> int:
        """The integer of struct layout `layout` at `position`."""
        size = struct.calcsize(layout)
        if not 0 <= position <= len(self.data) - size:
            raise self.fault(f"an offset leads to byte {position}, outside of the file")
        value: int = struct.unpack_from(layout, self.data, position)[0]
        return value

    def follow(self, position: int) -> int:
        """Where the 32-bit offset at `position` leads."""
        return position + self.number("<I", position)

    def root(self) -> Table:
        """The table that the file is."""
        return Table(self, self.follow(0))

    def string(self, position: int) -> str:
        """The string that starts at `position`."""
        length = self.number("<I", position)
        start = position + 4
        if start + length > len(self.data):
            raise self.fault(f"the string at byte {position} is longer than the file")
        self.spend(length, position)
        return self.data[start : start + length].decode(errors="replace")

    def spend(self, visits: int, position: int) -> None:
        """Count what is read. Raises InvalidModel when the file makes us read far more than it can mean."""
        self.visits_left -= visits
        if self.visits_left < 0:
            raise self.fault(f"byte {position} is referred to more often than a model can mean")

    def fault(self, problem: str) -> InvalidModel:
        """An InvalidModel about this file."""
        return InvalidModel(
            f"the flatbuffer is broken: {problem}",
            where=self.where,
            remedy="get the file again, or save the model again",
        )


@dataclass(frozen=True, slots=True)
class Table:
    """One table; fields are numbered from 0, as in the schema."""

    buffer: Buffer
    position: int

    def _field(self, number: int) -> int | None:
        """Where the field is, None when the table does not have it."""
        vtable = self.position - self.buffer.number("<i", self.position)
        entry = 4 + 2 * number
        if entry + 2 > self.buffer.number("<H", vtable):
            return None
        offset = self.buffer.number("<H", vtable + entry)
        return self.position + offset if offset else None

    def number(self, field: int, layout: str, default: int = 0) -> int:
        """An integer field."""
        position = self._field(field)
        return default if position is None else self.buffer.number(layout, position)

    def string(self, field: int) -> str:
        """A string field, empty when absent."""
        position = self._field(field)
        return "" if position is None else self.buffer.string(self.buffer.follow(position))

    def table(self, field: int) -> Table | None:
        """A field that is a table, or the value of a union."""
        position = self._field(field)
        return None if position is None else Table(self.buffer, self.buffer.follow(position))

    def extent(self, field: int, item_size: int) -> range:
        """Where the items of a vector field are, each `item_size` bytes; nowhere when it is absent."""
        position = self._field(field)
        if position is None:
            return range(0)
        start = self.buffer.follow(position)
        length = self.buffer.number("<I", start) * item_size
        if start + 4 + length > len(self.buffer.data):
            raise self.buffer.fault(f"the vector at byte {start} is longer than the file")
        return range(start + 4, start + 4 + length, item_size)

    def vector(self, field: int, item_size: int) -> range:
        """As `extent`, for a vector whose items will be read: they count against the buffer's limit."""
        items = self.extent(field, item_size)
        self.buffer.spend(len(items), items.start)
        return items

    def tables(self, field: int) -> list[Table]:
        """A field that is a vector of tables."""
        return [Table(self.buffer, self.buffer.follow(item)) for item in self.vector(field, 4)]

    def strings(self, field: int) -> list[str]:
        """A field that is a vector of strings."""
        return [self.buffer.string(self.buffer.follow(item)) for item in self.vector(field, 4)]
