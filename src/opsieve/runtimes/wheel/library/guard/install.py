"""Putting the guard into a slim library, so that the loader runs it before anything else of the library."""

from __future__ import annotations

from dataclasses import dataclass

from opsieve.code.elf import ElfFile
from opsieve.runtimes.wheel.library.additions import Additions
from opsieve.runtimes.wheel.library.dynamic import DT_FINI, DT_INIT, read_dynamic, set_entry_points
from opsieve.runtimes.wheel.library.guard.table import (
    Header,
    NameTable,
    RemovedFunctions,
    entry_points,
    guard_code,
    make_name_table,
)
from opsieve.runtimes.wheel.library.image import Image

CODE, NAMES, TEXTS, STATE = "guard code", "guard names", "guard texts", "guard state"
_STATE_IN_FILE = 16
"""Bytes; the rest of the state is zero and not in the file. Some loaders dislike a segment without any bytes."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The parts of the guard, not yet at their addresses."""

    code: bytes
    names: NameTable
    library: bytes
    advice: bytes

    def sizes(self) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """Bytes of each part: of code, of constants, of writable data."""
        texts = len(self.library) + len(self.advice)
        return {CODE: len(self.code)}, {NAMES: len(self.names.contents), TEXTS: texts}, {STATE: _STATE_IN_FILE}

    def install(self, elf: ElfFile, image: Image, additions: Additions, phdrs: int, phdr_count: int) -> None:
        """Write all parts, and make the loader run the guard in place of DT_INIT and DT_FINI, which it calls itself."""
        base, names, texts = (additions.address(name) for name in (CODE, NAMES, TEXTS))
        compiled, dynamic = entry_points(self.code), read_dynamic(elf)
        old_init, old_fini = dynamic.value(DT_INIT), dynamic.value(DT_FINI)
        header = Header(
            init=compiled.init,
            fini=compiled.fini,
            old_init=old_init - base if old_init else 0,
            old_fini=old_fini - base if old_fini else 0,
            image=-base,
            phdrs=phdrs - base,
            phdr_count=phdr_count,
            index=names - base,
            index_count=self.names.count,
            symbols=elf.section(".dynsym").address - base,
            strings=elf.section(".dynstr").address - base,
            symbol_count=len(elf.dynamic_symbols),
            library=texts - base,
            advice=texts + len(self.library) - base,
            state=additions.address(STATE) - base,
        ).pack()
        image.write(base, header + self.code[len(header) :])
        image.write(names, self.names.contents)
        image.write(texts, self.library + self.advice)
        set_entry_points(elf, image, {DT_INIT: base + compiled.init, DT_FINI: base + compiled.fini})


def make_guard(library: str, removed: RemovedFunctions) -> Guard:
    """Prepare the guard of the library with this file name."""
    return Guard(guard_code(), make_name_table(removed), library.encode() + b"\0", removed.advice.encode() + b"\0")
