"""Registrations that ride with their operator, with every compiler and linker that is here.

The sources are a toy with PyTorch's registration macros: what is tested is the rewriting, the table and the registrar,
and what each linker makes of them.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from opsieve.runtimes.source.association.tree import Associated, associate
from opsieve.runtimes.source.link.linker import Linker, find_linker
from opsieve.runtimes.source.link.listed import DEFINITION, entries_in, hidden_table, write_list
from opsieve.runtimes.source.objects import Compiler
from opsieve.runtimes.source.workspace import SUPPORT

TOY = Path(__file__).parent / "toy"
INCLUDE = ["-I", str(TOY / "include"), "-I", str(SUPPORT)]
FLAGS = ["-std=c++17", "-O2", "-ffunction-sections", "-fdata-sections", *INCLUDE]

MM = {"toy::mm.out#0", "toy::mm.out/CPU"}
NAMED = {"toy::named.by#0", "toy::named.by/CPU"}
CONV = {"toy::conv#2", "toy::conv/CPU", "toy::conv/QuantizedCPU"} | MM | NAMED
FFT = {"toy::fft#0", "toy::fft/CPU"} | CONV
LONELY = {"toy::lonely#0", "toy::lonely/CPU"}
EVERYTHING = FFT | LONELY


def preprocess(name: str, text: str) -> str:
    done = subprocess.run(
        ["g++", *FLAGS, "-E", "-x", "c++", "-"], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def associated() -> Associated:
    return associate({name: TOY / name for name in ("operators.cpp", "kernels.cpp")}, preprocess)


class Toy:
    """The toy's objects, each compiled once per compiler and flags."""

    def __init__(self, folder: Path, associated: Associated) -> None:
        self.folder = folder
        self.sites = associated.sites
        self.sources = {"registrar.cpp": SUPPORT / "registrar.cpp"}
        for name, text in associated.sources.items():
            self.sources[name] = folder / name
            self.sources[name].write_text(text)

    def objects(self, compiler: str, *flags: str, roots: tuple[str, ...] = ()) -> list[Path]:
        """Everything that is linked, the program with `roots` first."""
        made = [self._compile(compiler, TOY / "main.cpp", (*flags, *roots))]
        return [*made, *(self._compile(compiler, source, flags) for source in self.sources.values())]

    def listed(self, compiler: str, linker: Linker, *roots: str) -> set[str]:
        """What is registered when the registrar gets a list, as SelectiveLink makes it for such linkers."""
        objects = [self._compile(compiler, TOY / "main.cpp", (DEFINITION, *roots))]
        objects += [self._compile(compiler, source, (DEFINITION,)) for source in self.sources.values()]
        for path in objects:
            path.write_bytes(hidden_table(path.read_bytes()))
        known = {site.symbol for site in self.sites.all}
        found: frozenset[str] = frozenset()
        while True:
            write_list(found, self.folder / "listed.cpp")
            made = self.folder / "listed.o"
            subprocess.run([compiler, *FLAGS, "-c", str(self.folder / "listed.cpp"), "-o", str(made)], check=True)
            registered_now = registered(self.folder, compiler, linker, [*objects, made])
            before, found = found, entries_in(self.folder / "program", known)
            if found == before:
                return registered_now

    def _compile(self, compiler: str, source: Path, flags: tuple[str, ...]) -> Path:
        target = self.folder / f"{'_'.join((source.name, compiler, *flags))}.o"
        if not target.exists():
            subprocess.run([compiler, *FLAGS, *flags, "-c", str(source), "-o", str(target)], check=True)
        return target


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory, associated: Associated) -> Toy:
    return Toy(tmp_path_factory.mktemp("toy"), associated)


def registered(folder: Path, compiler: str, linker: Linker, given: list[Path], *flags: str) -> set[str]:
    program = folder / "program"
    subprocess.run([compiler, *linker.flags, *map(str, given), *flags, "-o", str(program)], check=True)
    return set(subprocess.run([program], capture_output=True, text=True, check=True).stdout.split())


def linker_named(compiler: str, name: str) -> Linker:
    if shutil.which(compiler) is None or shutil.which(f"ld.{name}") is None:
        pytest.skip(f"{compiler} or ld.{name} is not here")
    return find_linker(Compiler.find(compiler), name)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("linker", ["lld", "bfd"])
@pytest.mark.parametrize("flags", [(), ("-fPIC",)], ids=["fixed", "pie"])
def test_exactly_what_live_code_can_dispatch_is_registered(
    tmp_path: Path, toy: Toy, compiler: str, linker: str, flags: tuple[str, ...]
) -> None:
    chosen = linker_named(compiler, linker)
    assert chosen.is_exact
    cases: list[tuple[tuple[str, ...], set[str]]] = [((), set()), (("-DROOT_MM",), MM), (("-DROOT_CONV",), CONV)]
    for roots, expected in cases:
        given = toy.objects(compiler, *flags, roots=roots)
        for order in (given, given[::-1]):
            kept = registered(tmp_path, compiler, chosen, order, "-pie" if flags else "-no-pie")
            assert kept == expected, (roots, order)


@pytest.mark.parametrize("linker", ["lld", "bfd"])
def test_a_root_is_named_on_the_command_line(tmp_path: Path, toy: Toy, linker: str) -> None:
    chosen = linker_named("g++", linker)
    for operator, expected in (("3toy3fft", FFT), ("3toy6lonely", LONELY), ("3toy5named2by", NAMED)):
        assert registered(tmp_path, "g++", chosen, toy.objects("g++"), f"-Wl,-u,opsieve_op_{operator}") == expected


@pytest.mark.parametrize("linker", ["gold", "mold", "lld", "bfd"])
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_any_linker_prunes_exactly_when_it_is_given_a_list(toy: Toy, compiler: str, linker: str) -> None:
    chosen = linker_named(compiler, linker)
    assert toy.listed(compiler, chosen) == set()
    assert toy.listed(compiler, chosen, "-DROOT_MM") == MM
    assert toy.listed(compiler, chosen, "-DROOT_CONV") == CONV


@pytest.mark.parametrize("linker", ["gold", "mold"])
def test_a_linker_that_does_not_know_such_tables_keeps_everything(tmp_path: Path, toy: Toy, linker: str) -> None:
    chosen = linker_named("g++", linker)
    assert not chosen.is_exact
    assert registered(tmp_path, "g++", chosen, toy.objects("g++", roots=("-DROOT_MM",))) == EVERYTHING


def test_equal_functions_may_be_merged(tmp_path: Path, toy: Toy) -> None:
    chosen = linker_named("g++", "lld")
    assert (
        registered(tmp_path, "g++", chosen, toy.objects("g++", roots=("-DROOT_CONV",)), *chosen.folding("all")) == CONV
    )


def test_another_definition_takes_the_place_of_an_entry(tmp_path: Path, toy: Toy) -> None:
    """How an operator is left out although code refers to it: entries are weak."""
    chosen = linker_named("g++", "lld")
    other = tmp_path / "other.o"
    text = "char opsieve_op_3toy2mm3out;"
    subprocess.run(["gcc", "-x", "c", "-c", "-", "-o", str(other)], input=text, text=True, check=True)
    given = [*toy.objects("g++", roots=("-DROOT_CONV",)), other]
    assert registered(tmp_path, "g++", chosen, given) == CONV - MM


def test_sites_tell_what_is_where(associated: Associated) -> None:
    assert {str(name) for name in associated.sites.operators} == {
        "toy::conv", "toy::mm.out", "toy::fft", "toy::named.by", "toy::lonely"
    }  # fmt: skip
    (conv,) = [site for site in associated.sites.all if site.symbol == "opsieve_op_3toy4conv"]
    assert (conv.file, conv.line) == ("kernels.cpp", 20)
    assert [site.key for site in associated.sites.kernels(conv.operator)] == ["CPU", "QuantizedCPU"]
    assert not associated.always
