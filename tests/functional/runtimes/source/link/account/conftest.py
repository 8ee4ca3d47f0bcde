"""A sample program, compiled and linked by whatever is here."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from opsieve.code.elf import STT_FUNC, ElfFile
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.names import interpreter_symbol, kernel_symbol, operator_symbol
from opsieve.runtimes.source.association.sites import Site, SiteKind, Sites
from opsieve.runtimes.source.link.account.reading import read_account
from opsieve.runtimes.source.link.account.values import LinkAccount
from opsieve.runtimes.source.link.linker import Linker, find_linker
from opsieve.runtimes.source.link.linking import LinkInput, response_file
from opsieve.runtimes.source.objects import Compiler
from opsieve.select.selection import RuntimeIdentity

SAMPLE = Path(__file__).parent / "sample"
FLAGS = ("-std=c++17", "-O2", "-ffunction-sections", "-fdata-sections")
RUNTIME = RuntimeIdentity("2.6.0", "f00d")
OPERATORS = ("test::conv", "test::mm", "test::add.Tensor", "test::relu", "test::zero", "test::twin")
_REMOVED = re.compile(
    r"removing unused section (?:(?P<file>\S+):\((?P<name>.*)\)|'(?P<gnu_name>.*)' in file '(?P<gnu_file>.*)')"
)


def sites() -> Sites:
    """The registrations of the sample."""
    found = [Site(SiteKind.INTERPRETER, LEN, interpreter_symbol(LEN, "interpreter"), "operators.cpp", 9)]
    for text in OPERATORS:
        name = OperatorName.parse(text)
        found.append(Site(SiteKind.SCHEMA, name, operator_symbol(name), "operators.cpp", 1))
        found.append(Site(SiteKind.KERNEL, name, kernel_symbol(name, "CPU"), "operators.cpp", 2, "CPU"))
    return Sites(found)


LEN = OperatorName("test", "len")


@dataclass(frozen=True)
class Linked:
    """A linked sample; `removed` is what the linker says it dropped: (object, section) -> how often."""

    program: Path
    given: LinkInput
    linker: Linker
    removed: Counter[tuple[str, str]]

    def account(self) -> LinkAccount:
        """What we say about it."""
        names = {path: path.name.partition(".")[0] + ".cpp" for path in self.given.objects}
        return read_account(self.program, self.given, names, sites(), self.linker, RUNTIME)

    def addresses(self) -> dict[str, int]:
        """Function -> address, of the functions that are in the program under one name."""
        return {name: address for name, (address, _) in self._functions().items()}

    def size(self, name: str) -> int:
        """Bytes of a function."""
        return self._functions()[name][1]

    def folded_with(self, folded: Linked) -> list[str]:
        """The functions of this program that in `folded` have the address of another, but for one of each."""
        seen: dict[int, str] = {}
        # Constructors and destructors have several names for one address.
        own = {address: name for name, address in self.addresses().items() if name in folded.addresses()}.values()
        return [name for name in sorted(own) if seen.setdefault(folded.addresses()[name], name) != name]

    def _functions(self) -> dict[str, tuple[int, int]]:
        program = ElfFile(self.program, or_program=True)
        symbols = program.symbols[(program.symbols["info"] & 15 == STT_FUNC) & (program.symbols["shndx"] > 0)]
        names = program.names_of(symbols["name"].astype(np.int64))
        places = zip(symbols["value"].tolist(), symbols["size"].tolist(), strict=True)
        return {name.decode(): place for name, place in zip(names, places, strict=True)}


class Builder:
    """Compiles the sample once per compiler and flags."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def link(self, compiler: str, linker: str, roots: tuple[str, ...], *flags: str) -> Linked:
        """Link the sample with these roots (operators)."""
        if shutil.which(compiler) is None or shutil.which(f"ld.{linker}") is None:
            pytest.skip(f"{compiler} or ld.{linker} is not here")
        chosen = find_linker(Compiler.find(compiler), linker)
        compile_flags = tuple(flag for flag in flags if flag.startswith("-f"))
        objects = tuple(self._compile(compiler, name, compile_flags) for name in ("main", "operators"))
        return self.link_objects(chosen, objects, roots, *flags, compiler=compiler)

    def link_objects(
        self, chosen: Linker, objects: tuple[Path, ...], roots: tuple[str, ...], *flags: str, compiler: str = "g++"
    ) -> Linked:
        """Link these objects."""
        given = LinkInput(objects, tuple(sites().roots(OperatorName.parse(root))[0] for root in roots))
        program = self.folder / "_".join(("program", compiler, chosen.name, *roots, *flags)).replace("::", "-")
        arguments = program.with_suffix(".rsp")
        arguments.write_text(response_file(given))
        command = [compiler, *chosen.flags, *flags, "-Wl,--print-gc-sections", "-o", program, f"@{arguments}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return Linked(program, given, chosen, _removed(done.stdout + done.stderr))

    def _compile(self, compiler: str, name: str, flags: tuple[str, ...]) -> Path:
        target = self.folder / ".".join((name, compiler, *flags, "o"))
        if not target.exists():
            subprocess.run([compiler, *FLAGS, *flags, "-c", SAMPLE / f"{name}.cpp", "-o", target], check=True)
        return target


def _removed(said: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for match in _REMOVED.finditer(said):
        # GNU ld puts the group behind the name: `.text._Z1fv[_Z1fv]`.
        name = match["name"] or match["gnu_name"].partition("[")[0]
        found[match["file"] or match["gnu_file"], name] += 1
    return found


@pytest.fixture(scope="session")
def builder(tmp_path_factory: pytest.TempPathFactory) -> Builder:
    return Builder(tmp_path_factory.mktemp("sample"))
