"""Run with a Python that has torch: prepares inputs, or runs variations, one JSON line per event on stdout.

Request on stdin: `{"task": "prepare" | "run", ...}`, see `prepare.py` and `calls.py` for the rest.
The first event, `torch`, is the folder of what was imported. The interpreter need not have opsieve: this file makes
just the package it lies in importable, and not its neighbours in site-packages, which may belong to another Python.
"""

from __future__ import annotations

import json
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path


def _make_opsieve_importable() -> None:
    folder = Path(__file__).parents[2]
    spec = spec_from_file_location("opsieve", folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import opsieve from {folder}")
    module = module_from_spec(spec)
    sys.modules["opsieve"] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Do what the request says."""
    _make_opsieve_importable()
    from opsieve.verify.child.events import teller

    tell = teller()
    request = json.load(sys.stdin)
    import torch

    tell({"torch": str(Path(torch.__file__).parent)})
    if request["task"] == "prepare":
        from opsieve.verify.child.prepare import prepare

        prepare(request, tell)
    elif request["task"] == "run":
        from opsieve.verify.child.calls import run_all

        run_all(request, tell)


if __name__ == "__main__":
    main()
