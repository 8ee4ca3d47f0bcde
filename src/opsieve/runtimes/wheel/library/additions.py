"""What a slim library has that the old one had not: three new segments behind the last old address.

Each part is given its room first, because parts point at one another, and is written once all addresses are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from opsieve.code.elf import PT_LOAD
from opsieve.runtimes.wheel.library.segments import PAGE, PF_R, PF_W, PF_X, Segment, page_up

_ALIGNMENT = 16


@dataclass(slots=True)
class Room:
    """One new segment under construction; sizes in bytes."""

    flags: int
    address: int
    parts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Address and size of each part."""

    memory: int = 0
    """Bytes that are zero at start and so not in the file."""

    def add(self, name: str, size: int) -> int:
        """Reserve room for a part; returns its address."""
        address = -(-self.end // _ALIGNMENT) * _ALIGNMENT
        self.parts[name] = (address, size)
        return address

    @property
    def end(self) -> int:
        """The address behind the last part."""
        return max((address + size for address, size in self.parts.values()), default=self.address)

    def segment(self) -> Segment:
        """The program header; its offset is given later."""
        size = self.end - self.address
        return Segment(PT_LOAD, self.flags, 0, self.address, size, size + self.memory, PAGE)


@dataclass(frozen=True, slots=True)
class Additions:
    """The new segments by address: code, constants, writable data. Those without any part are left out."""

    code: Room
    constants: Room
    data: Room

    @classmethod
    def behind(cls, segments: Sequence[Segment], sizes: tuple[dict[str, int], ...], memory: int) -> Additions:
        """Reserve room for all parts. `sizes` gives the bytes of each part: of code, of constants, of writable data.

        `memory`: further bytes of writable memory that start as zero.
        """
        address = max(s.address + s.memory_size for s in segments if s.type == PT_LOAD)
        rooms = []
        for flags, parts in zip((PF_R | PF_X, PF_R, PF_R | PF_W), sizes, strict=True):
            room = Room(flags, page_up(address), memory=memory if flags & PF_W else 0)
            for name, size in parts.items():
                room.add(name, size)
            rooms.append(room)
            address = room.end + room.memory
        return cls(*rooms)

    def address(self, name: str) -> int:
        """The address of a part."""
        return self._find(name)[0]

    def _find(self, name: str) -> tuple[int, int]:
        for room in (self.code, self.constants, self.data):
            if name in room.parts:
                return room.parts[name]
        raise KeyError(name)

    def sizes(self) -> dict[str, int]:
        """Bytes of each part that are in the file."""
        return {name: size for room in (self.code, self.constants, self.data) for name, (_, size) in room.parts.items()}

    def segments(self) -> list[Segment]:
        """Their program headers, by address."""
        return [room.segment() for room in (self.code, self.constants, self.data) if room.parts]
