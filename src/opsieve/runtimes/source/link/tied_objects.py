"""Objects as they are linked: handlers of exceptions tied to their functions, beside the objects they come from."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from opsieve.runtimes.source.link.handler_tables import tie_handlers
from opsieve.runtimes.source.link.listed import hidden_table
from opsieve.runtimes.source.objects import ObjectStore


def tied_object(path: Path, store: ObjectStore, *, listed: bool = False) -> Path:
    """The object to link in place of one of the store's. Valid as long as that one.

    `listed` hides the table of registrations from the linker.
    """
    target = store.root / ("listed" if listed else "tied") / path.parent.name / path.name
    if store.use(target):
        return target
    content = tie_handlers(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if content is None:
        content = path.read_bytes()
    if listed:
        content = hidden_table(content)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    with os.fdopen(handle, "wb") as stream:
        stream.write(content)
    os.replace(name, target)  # noqa: PTH105 - two runs may do so at once, with the same bytes
    store.use(target)
    return target
