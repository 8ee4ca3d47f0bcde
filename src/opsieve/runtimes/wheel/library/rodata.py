"""Which parts of `.rodata` the kept code may read.

Constants have no symbols that could be trusted, but code can reach them only through an address that is written
down somewhere: in an instruction, in a relocation, or as a distance in another constant. These addresses cut the
section into objects. An object stays if its address stands in kept code or in any relocation (nobody asks which
table the relocation is in, because all writable data stays). It stays with generous margins, because an index or a
neighbour may reach beyond what the next address seems to end:

* up to the end of the C string that starts there: linkers let one string be the tail of another;
* at least NEIGHBOURHOOD bytes to both sides: compilers write `table - 8` for an index that starts at 1;
* the whole of an object that the symbol table knows, and everything that is exported.

LLVM turns tables of pointers into tables of 32-bit distances, counted from the start of the table, which have no
relocations (its pass RelLookupTableConverter). Whatever looks like one is taken for one, so its targets stay too. On
libtorch_cpu.so that costs 0.2 MB, and all of it seems to be chance.
"""

from __future__ import annotations

import numpy as np

from opsieve.code.arrays import distinct
from opsieve.code.elf import STT_OBJECT, Bytes, ElfFile, Int64s, Records, Section
from opsieve.code.links import Links
from opsieve.code.references import References
from opsieve.runtimes.wheel.library.fields import read_signed
from opsieve.runtimes.wheel.library.ranges import Ranges

NEIGHBOURHOOD = 256
"""Bytes kept before and behind each needed address. Only whole pages of 4096 save anything, so this costs little."""

_LONGEST_TABLE = 4096
"""Entries of a table of distances; a longer run of such numbers is something else."""


def kept_constants(elf: ElfFile, section: Section, references: References, links: Links, code: Ranges) -> Ranges:
    """The addresses of `section` that must stay when only `code` of all code stays."""
    inside = (references.operand_targets >= section.address) & (references.operand_targets < section.end)
    sites, targets = references.operand_sites[inside], references.operand_targets[inside]
    from_data = _within(section, links.targets)
    cuts = np.append(distinct(np.concatenate([targets, from_data])), section.end)
    needed = distinct(np.concatenate([targets[code.contains(sites)], from_data]))
    following = cuts[np.searchsorted(cuts, needed, "right")]
    contents = elf.contents(section)
    return Ranges.of(needed, following).union(
        _around(section, contents, needed),
        _symbols(elf.symbols, section, needed),
        _exported(elf.dynamic_symbols, section),
        _around(section, contents, _distances(section, contents, needed, following)),
    )


def _within(section: Section, addresses: Int64s) -> Int64s:
    return addresses[(addresses >= section.address) & (addresses < section.end)]


def _around(section: Section, contents: Bytes, places: Int64s) -> Ranges:
    """The neighbourhood of each place, and the rest of the C string that it is in."""
    zeros = np.flatnonzero(contents == 0) + section.address
    string_ends = np.append(zeros + 1, section.end)[np.searchsorted(zeros, places)]
    ends = np.maximum(string_ends, places + NEIGHBOURHOOD)
    starts = places - NEIGHBOURHOOD
    return Ranges.of(np.maximum(starts, section.address), np.minimum(ends, section.end))


def _symbols(symbols: Records, section: Section, needed: Int64s) -> Ranges:
    """The whole of each object of the symbol table that holds a needed address."""
    starts, ends = _sized(symbols, section)
    hit = np.searchsorted(needed, starts) < np.searchsorted(needed, ends)
    return Ranges.of(starts[hit], ends[hit])


def _exported(symbols: Records, section: Section) -> Ranges:
    return Ranges.of(*_sized(symbols, section))


def _sized(symbols: Records, section: Section) -> tuple[Int64s, Int64s]:
    found = symbols[(symbols["info"] & 15 == STT_OBJECT) & (symbols["shndx"] == section.index)]
    starts = found["value"].astype(np.int64)
    return starts, np.minimum(starts + np.maximum(found["size"].astype(np.int64), 1), section.end)


def _distances(section: Section, contents: Bytes, starts: Int64s, ends: Int64s) -> Int64s:
    """Where the tables of distances among the objects `[starts[i], ends[i])` lead, as addresses.

    A table has two entries or more, and none of them leads into the table itself.
    """
    long_enough = ends - starts >= 8
    starts, ends = starts[long_enough], ends[long_enough]
    for entry in (0, 1):
        target = starts + read_signed(contents, starts - section.address + 4 * entry, 4)
        likely = (target >= section.address) & (target < section.end)
        starts, ends = starts[likely], ends[likely]
    found = [np.empty(0, np.int64)]
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        places = start - section.address + 4 * np.arange(min((end - start) // 4, _LONGEST_TABLE))
        targets = start + read_signed(contents, places, 4)
        inside = (targets >= section.address) & (targets < section.end)
        length = len(targets) if inside.all() else int(np.argmin(inside))
        table = targets[:length]
        if not np.any((table >= start) & (table < start + 4 * length)):
            found.append(table)
    return distinct(np.concatenate(found))
