"""Tables of exception handlers that go with their functions.

g++ and clang put the handlers of each function into a section of its own, `.gcc_except_table.NAME`, to which only the
unwinding tables refer. lld keeps such a section whether or not the function is live, unless it is in the function's
group or its header names the function's section (SHF_LINK_ORDER, as newer compilers write it). Naming it changes two
fields of a header.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from opsieve.code.elf import SECTION_HEADER, Int64s
from opsieve.runtimes.source.link.account.object_file import ObjectFile
from opsieve.runtimes.source.link.account.program_graph import handlers_of

_SHF_GROUP, _SHF_LINK_ORDER = 0x200, 0x80
_FIELDS = {name: SECTION_HEADER.fields[name][1] for name in ("flags", "link")} if SECTION_HEADER.fields else {}
_COLD = b".text.unlikely."


def tie_handlers(path: Path) -> bytes | None:
    """The object with each table of handlers tied to its function, or None if there is nothing to tie.

    Raises InvalidFile for an object that is malformed.
    """
    found = ObjectFile(path)
    pairs = _pairs(found)
    if not pairs:
        return None
    content = bytearray(found.content)
    table = found.sections_offset
    for handlers, function in pairs.items():
        at = table + handlers * SECTION_HEADER.itemsize
        flags = int(found.sections["flags"][handlers]) | _SHF_LINK_ORDER
        content[at + _FIELDS["flags"] : at + _FIELDS["flags"] + 8] = flags.to_bytes(8, "little")
        content[at + _FIELDS["link"] : at + _FIELDS["link"] + 4] = function.to_bytes(4, "little")
    return bytes(content)


def _pairs(found: ObjectFile) -> dict[int, int]:
    """Section of handlers -> the section of the one function that uses it."""
    functions, handlers = handlers_of(found)
    free = (found.sections["flags"] & (_SHF_GROUP | _SHF_LINK_ORDER)) == 0
    pairs = {}
    for section in np.unique(handlers[free[handlers]]).tolist():
        function = _owner(found, functions[handlers == section])
        if function is not None:
            pairs[section] = function
    return pairs


def _owner(found: ObjectFile, functions: Int64s) -> int | None:
    """The only function of a table, not counting its cold part: that has a section of its own, and the same name."""
    names = {number: found.section_name(number) for number in np.unique(functions).tolist()}
    warm = [number for number, name in names.items() if not name.startswith(_COLD)]
    if len(warm) != 1:
        return None
    own = names[warm[0]].removeprefix(b".text.")
    others = {name.removeprefix(_COLD) for number, name in names.items() if number != warm[0]}
    return warm[0] if others <= {own} else None
