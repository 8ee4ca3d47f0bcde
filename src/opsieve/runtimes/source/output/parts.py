"""What a finished build hands over to be written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.runtimes.source.capabilities import Capabilities
from opsieve.runtimes.source.objects import CompileJob, Compiler
from opsieve.runtimes.source.options import Interpreter
from opsieve.runtimes.source.output.sizes import SizeTables
from opsieve.select.selection import Selection

RUNNER = "opsieve/run.cpp"


@dataclass(frozen=True)
class RuntimeParts:
    """A linked runtime. Every path has to be there until the folder is written."""

    version: str
    """Of PyTorch."""

    interpreter: Interpreter
    program: Path
    """The linked runner."""

    objects: Mapping[str, Path]
    """Source name -> object, in the order of the link."""

    roots: tuple[str, ...]
    """Symbols that the linker is told to keep."""

    link_flags: tuple[str, ...]
    """For the compiler driver: which linker, and what makes it prune."""

    libraries: tuple[str, ...]
    """For the compiler driver: what is linked beside PyTorch."""

    compiler: Compiler
    compile: CompileJob
    """How a source is compiled: its flags and include folders count here, not its name."""

    selection: Selection
    sizes: SizeTables
    account: bytes
    """The link's account, as it is saved."""

    command: tuple[str, ...]
    """The words that made it, the program's name first."""

    capabilities: Capabilities
    """What models it loads."""

    shared: Path | None = None
    """The same as a shared library."""

    header_record: Path | None = None
    """Where to remember which headers an application needs; a name of its own per tree and flags."""

    programs: tuple[str, ...] = (RUNNER,)
    """Names of the sources that hold a `main`; they stay out of the library."""

    @property
    def library_objects(self) -> dict[str, Path]:
        """What goes into the library."""
        return {name: path for name, path in self.objects.items() if name not in self.programs}
