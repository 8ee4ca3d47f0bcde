"""A source tree of a dozen files with the shapes of declarations that PyTorch has, and its objects."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opsieve.runtimes.source.index import SymbolIndex

ROOT = Path(__file__).parent / "tree"
FILES = [(path.relative_to(ROOT).as_posix(), path) for path in sorted(ROOT.rglob("*.*"))]
DEFINES = {"CPU_CAPABILITY": "DEFAULT"}


def index_text(folder: Path, defines: dict[str, str] | None = None, **files: str) -> SymbolIndex:
    """The index of files given as text; `a__cpp` is the file `a.cpp`."""
    made = []
    for name, text in files.items():
        path = folder / name.replace("__", ".")
        path.write_text(text)
        made.append((path.name, path))
    return SymbolIndex.build(made, defines)


def compile_tree(folder: Path) -> dict[str, Path]:
    """The object of each source."""
    objects = {}
    for name, path in FILES:
        if path.suffix in (".cpp", ".c"):
            objects[name] = folder / (name.replace("/", "__") + ".o")
            compiler = ["gcc"] if path.suffix == ".c" else ["g++", "-std=c++17"]
            macros = [f"-D{key}={value}" for key, value in DEFINES.items()]
            subprocess.run([*compiler, "-w", f"-I{ROOT}", *macros, "-c", path, "-o", objects[name]], check=True)
    return objects
