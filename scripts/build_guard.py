"""Compile the guard (guard.c) to the machine code that opsieve puts into slim libraries.

Run it after a change of the sources, and commit the result: users have no compiler.
    python scripts/build_guard.py
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src/opsieve/runtimes/wheel/library/guard"
RESULT = SOURCES / "guard_x86_64.bin"
FLAGS = (
    *("-Os", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-fPIC", "-fvisibility=hidden"),
    *("-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fcf-protection=none", "-mno-sse"),
    # Neither tables of addresses nor calls of memcpy and memset, which the compiler would put in on its own.
    *("-fno-jump-tables", "-fno-tree-loop-distribute-patterns"),
)


def digest() -> str:
    """The SHA-256 of the sources, which the machine code carries, so that a stale one is noticed."""
    names = ("guard.c", "inflate.h", "guard.ld")
    return hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in names)).hexdigest()


def build(result: Path, compiler: str = "gcc") -> None:
    """Write the machine code to `result`. Raises CalledProcessError if the compiler or linker fails."""
    with tempfile.TemporaryDirectory() as folder:
        unlinked, linked = Path(folder) / "guard.o", Path(folder) / "guard.elf"
        define = f'-DSOURCE_DIGEST="{digest()}"'
        subprocess.run([compiler, *FLAGS, define, "-c", SOURCES / "guard.c", "-o", unlinked], check=True)
        _refuse_absolute_addresses(unlinked)
        subprocess.run(["ld.bfd", "-T", SOURCES / "guard.ld", unlinked, "-o", linked], check=True)
        subprocess.run(["objcopy", "-O", "binary", "-j", ".all", linked, result], check=True)


def _refuse_absolute_addresses(unlinked: Path) -> None:
    """Only distances may be left to the linker: the loader is never going to fill in an address."""
    table = subprocess.run(["readelf", "-rW", unlinked], check=True, capture_output=True, text=True).stdout
    kinds = {word for word in table.split() if word.startswith("R_X86_64")}
    if kinds - {"R_X86_64_PC32", "R_X86_64_PLT32", "R_X86_64_PC64"}:
        raise SystemExit(f"guard.c needs relocations at run time: {kinds}")


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else RESULT)
