"""Runs in a child process with torch: prints, as JSON, what its dispatcher says of itself.

Request: `{"keys": [...]}`, the dispatch keys whose computed table entries are wanted (all keys of all operators
are 40 MB of text). Answer: `version`; `dumps` (operator -> text of `_dispatch_dump`); `tables` (operator -> wanted
lines of `_dispatch_dump_table`); `fallbacks` (the table of an operator that has no kernel at all, so that every
line of it is a backend fallback); `interpreter` (schemas that the TorchScript interpreter knows).
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

PROBE = "opsieve_probe"


def main() -> None:
    """Answer one request from standard input."""
    answer_to = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever torch or its plugins print on import must not mix with the answer
    wanted = tuple(f"{key}:" for key in json.load(sys.stdin)["keys"])
    with answer_to:
        json.dump(_answer(wanted), answer_to)


def _answer(wanted: tuple[str, ...]) -> dict[str, Any]:
    import torch

    dispatcher = torch._C
    names = dispatcher._dispatch_get_all_op_names()
    schemas = dispatcher._jit_get_all_schemas()
    return {
        "version": torch.__version__,
        "dumps": {name: dispatcher._dispatch_dump(name) for name in names},
        "tables": {name: _lines(dispatcher._dispatch_dump_table(name), wanted) for name in names},
        "fallbacks": _fallbacks(torch),
        "interpreter": [f"{s.name}.{s.overload_name}" if s.overload_name else s.name for s in schemas],
    }


def _lines(table: str, wanted: tuple[str, ...]) -> list[str]:
    return [line for line in table.splitlines() if line.startswith(wanted)]


def _fallbacks(torch: Any) -> list[str]:  # noqa: ANN401 (a module)
    library = torch.library.Library(PROBE, "DEF")
    library.define("nothing() -> ()")
    table: str = torch._C._dispatch_dump_table(f"{PROBE}::nothing")
    return table.splitlines()


if __name__ == "__main__":
    main()
