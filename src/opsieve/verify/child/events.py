"""How a child tells its parent what happens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

Tell = Callable[[dict[str, Any]], None]


def teller() -> Tell:
    """Keep stdout for events, one JSON line each: whatever torch or a model prints goes to stderr from now on."""
    stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def tell(event: dict[str, Any]) -> None:
        stdout.write(json.dumps(event) + "\n")
        stdout.flush()

    return tell
