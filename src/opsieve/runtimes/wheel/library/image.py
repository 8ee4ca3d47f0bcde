"""The new library as it is built up: a buffer laid out as the file, addressed as the loader will map it."""

from __future__ import annotations

import numpy as np

from opsieve.code.elf import HEADER, PROGRAM_HEADER, Bytes, ElfFile, Int64s
from opsieve.errors import InvalidLibrary
from opsieve.runtimes.wheel.library.ranges import Flags, Ranges
from opsieve.runtimes.wheel.library.segments import Layout, header_records


class Image:
    """The contents of the new file, to begin with those of the kept pages; `data` is what gets written."""

    def __init__(self, elf: ElfFile, layout: Layout) -> None:
        self.data: Bytes = np.zeros(layout.file_size, np.uint8)
        self.shared = Ranges.empty()
        """Addresses in pages that stand for several: only what must stay may be written there."""
        self._elf = elf
        self._starts = np.array([load.address for load in layout.loads], np.int64)
        self._ends = np.array([load.end for load in layout.loads], np.int64)
        self._offsets = np.array([load.offset for load in layout.loads], np.int64)
        self._old_offsets = np.array([old for _, old in layout.pieces], np.int64)
        for segment, old in layout.pieces:
            self.data[segment.offset : segment.offset + segment.file_size] = elf.bytes[old : old + segment.file_size]

    def share(self, pages: Ranges, kept: Ranges, filler: int) -> None:
        """Make pages that stand for several: what `kept` holds of each comes together, all else is `filler`."""
        self.shared = pages
        self.fill(pages, filler)
        for start, end in kept.intersection(pages):
            index = int(np.searchsorted(self._starts, start, "right")) - 1
            old = int(self._old_offsets[index]) + start - int(self._starts[index])
            self.write(start, self._elf.bytes[old : old + end - start])

    @property
    def addresses(self) -> Ranges:
        """All addresses whose contents come from the file."""
        return Ranges.of(self._starts, self._ends)

    def holds(self, addresses: Int64s, size: int) -> Flags:
        """For each address whether the file holds the `size` bytes from there on."""
        index = np.searchsorted(self._starts, addresses, "right") - 1
        return (index >= 0) & (addresses + size <= self._ends[index])

    def positions(self, addresses: Int64s, size: int = 1) -> Int64s:
        """The offsets in the file of `size` bytes from each address. Raises InvalidLibrary if the file lacks one."""
        lacking = ~self.holds(addresses, size)
        if np.any(lacking):
            raise InvalidLibrary(
                f"what should stand at address {int(addresses[lacking][0]):#x} is in no loaded segment",
                where=self._elf.path,
            )
        index = np.searchsorted(self._starts, addresses, "right") - 1
        return self._offsets[index] + addresses - self._starts[index]

    def write(self, address: int, contents: Bytes | bytes) -> None:
        """Put bytes at an address."""
        contents = np.frombuffer(contents, np.uint8) if isinstance(contents, bytes) else contents
        if len(contents):
            place = int(self.positions(np.array([address], np.int64), len(contents))[0])
            self.data[place : place + len(contents)] = contents

    def fill(self, ranges: Ranges, value: int) -> None:
        """Overwrite what the file holds of `ranges` with one byte value."""
        here = ranges.intersection(self.addresses)
        for place, size in zip(self.positions(here.starts).tolist(), (here.ends - here.starts).tolist(), strict=True):
            self.data[place : place + size] = value

    def write_headers(self, layout: Layout, table_offset: int) -> None:
        """Write the program header table and point the file header at it; section headers come later, if at all."""
        table = header_records(layout.headers).view(np.uint8)
        self.data[table_offset : table_offset + len(table)] = table
        header = self.data[: HEADER.itemsize].view(HEADER)[0]
        header["phoff"], header["phnum"], header["phentsize"] = (
            table_offset,
            len(layout.headers),
            PROGRAM_HEADER.itemsize,
        )
        header["shoff"] = header["shnum"] = header["shstrndx"] = 0
