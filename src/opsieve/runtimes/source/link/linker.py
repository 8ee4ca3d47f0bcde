"""Which linker a compiler driver will run, and whether it prunes a table of registrations exactly."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from enum import StrEnum

from opsieve.errors import MissingInstallation
from opsieve.runtimes.source.objects.compiler import Compiler


class LinkerKind(StrEnum):
    """The linkers we know."""

    LLD = "lld"
    GNU = "bfd"
    GOLD = "gold"
    MOLD = "mold"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Linker:
    """A linker as a compiler driver calls it: `-fuse-ld=` and a name; an empty name is the driver's own choice."""

    name: str
    kind: LinkerKind
    version: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        """Whether it drops table entries that nothing live refers to: lld always did, GNU ld since 2.37.

        gold has no such option, mold 1.10 accepts and ignores it: everything stays, which is correct, and bigger.
        """
        return self.kind is LinkerKind.LLD or (self.kind is LinkerKind.GNU and self.version >= (2, 37))

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags that make it prune, for the compiler driver."""
        use = (f"-fuse-ld={self.name}",) if self.name else ()
        exact = ("-Wl,-z,start-stop-gc",) if self.is_exact else ()
        all_errors = ("-Wl,--error-limit=0",) if self.kind is LinkerKind.LLD else ()
        return (*use, "-Wl,--gc-sections", *exact, "-Wl,--no-demangle", *all_errors)

    def folding(self, how: str) -> tuple[str, ...]:
        """The flag that merges equal functions: `how` is "all", "safe" or "none". GNU ld cannot."""
        can = self.kind in (LinkerKind.LLD, LinkerKind.GOLD, LinkerKind.MOLD)
        return (f"-Wl,--icf={how}",) if can and how != "none" else ()


# In this order: mold and LLD both call themselves compatible with GNU ld or linkers.
_KINDS = {"mold": LinkerKind.MOLD, "LLD": LinkerKind.LLD, "GNU gold": LinkerKind.GOLD, "GNU ld": LinkerKind.GNU}
_PREFERRED = ("lld", "bfd", "")


def require_usable(linker: Linker) -> None:
    """Raise MissingInstallation for a linker with which registrations get lost."""
    if linker.kind is LinkerKind.MOLD:
        raise MissingInstallation(
            "runtimes from source cannot be linked with mold: it leaves symbols of registrations undefined in silence",
            expected="lld, GNU ld or gold",
            remedy="leave --linker out, or install lld",
        )


def find_linker(compiler: Compiler, name: str | None = None) -> Linker:
    """The linker of this name for `-fuse-ld=`, else the first that prunes exactly, else the driver's own.

    Raises MissingInstallation when the driver cannot run it.
    """
    if name is not None:
        found = _ask(compiler, name)
        if found is None:
            raise MissingInstallation(
                f"{compiler.path.name} cannot link with {name}",
                expected="lld, bfd (GNU ld), gold or mold, installed",
                remedy="apt-get install lld, or leave --linker out",
            )
        return found
    candidates = [linker for linker in (_ask(compiler, candidate) for candidate in _PREFERRED) if linker is not None]
    exact = [linker for linker in candidates if linker.is_exact]
    if not candidates:
        raise MissingInstallation("there is no linker", where=compiler.path, remedy="apt-get install lld")
    return (exact or candidates)[0]


def _ask(compiler: Compiler, name: str) -> Linker | None:
    if name and "/" not in name and shutil.which(f"ld.{name}") is None:
        return None
    use = [f"-fuse-ld={name}"] if name else []
    done = subprocess.run(
        [*compiler.command, *use, "-Wl,--version"], capture_output=True, text=True, timeout=60, check=False
    )
    if done.returncode or not done.stdout:
        return None
    words = done.stdout.splitlines()[0]
    kind = next((kind for text, kind in _KINDS.items() if text in words), LinkerKind.OTHER)
    version = re.search(r"(\d+(?:\.\d+)+)(?!.*\d\.\d)", words)
    return Linker(name, kind, tuple(map(int, version[1].split("."))) if version else ())
