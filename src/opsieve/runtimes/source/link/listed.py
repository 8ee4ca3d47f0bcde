"""Exact links with linkers that keep a whole table: the registrar is given a list of entries instead.

Nothing refers to the table's begin then, so that plain garbage collection of sections drops every entry that nothing
refers to. The first link lists the roots. The entries that are in its program are those that live code needs, since
relocations without effect keep them; they are the list of the next link, until a link adds none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from opsieve.code.elf import ElfFile
from opsieve.runtimes.source.association.names import TABLE

_TABLE, _HIDDEN = (f"{name}\0".encode() for name in (TABLE, f".{TABLE[1:]}"))

DEFINITION = "-DOPSIEVE_LISTED"
"""What the registrar is compiled with, to read the list."""


def write_list(symbols: Iterable[str], target: Path) -> None:
    """Write a C++ source with the addresses of these entries."""
    names = sorted(symbols)
    lines = ["// Written by opsieve.", "#include <cstddef>", 'extern "C" {']
    for number, symbol in enumerate(names):
        lines.append(
            f'extern const void* const opsieve_entry_{number} asm("{symbol}") __attribute__((visibility("hidden")));'
        )
    entries = ", ".join(f"&opsieve_entry_{number}" for number in range(len(names))) or "nullptr"
    lines += [
        f"extern const void* const* const opsieve_listed[] = {{{entries}}};",
        f"extern const std::size_t opsieve_listed_count = {len(names)};",
        "}",
    ]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


def hidden_table(content: bytes) -> bytes:
    """An object whose table is no table to a linker: mold keeps every section that has a C identifier for a name.

    The names of an object's sections are the only text in it that is this name and nothing more.
    """
    return content.replace(_TABLE, _HIDDEN)


def entries_in(program: Path, known: Collection[str]) -> frozenset[str]:
    """The entries that a program holds: symbols of `known` that its symbol table defines."""
    elf = ElfFile(program, or_program=True)
    defined = elf.symbols[elf.symbols["shndx"] != 0]
    names = {name.decode() for name in elf.names_of(defined["name"].astype("int64"))}
    return frozenset(names & set(known))
