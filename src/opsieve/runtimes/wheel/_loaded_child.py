"""Prints, as JSON, the shared libraries of this process after `import torch`. Run by roots.loaded_libraries."""

import json
from pathlib import Path

import torch  # noqa: F401 (imported for what it loads)

if __name__ == "__main__":
    lines = Path("/proc/self/maps").read_text().splitlines()
    paths = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    print(json.dumps(sorted(path for path in paths if ".so" in Path(path).name and path.startswith("/"))))  # noqa: T201
