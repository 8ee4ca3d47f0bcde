"""The options of builds from source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from opsieve.runtimes.source.options import BuildOptions

_Command = Callable[..., Any]

LINKERS = ("lld", "bfd", "gold")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the options say; every field has the name of its option."""

    source: Path | None
    interpreter: str
    cpu: str
    blas: str
    threads: str
    quantized_engine: str
    optimise: str
    cxx_flag: tuple[str, ...]
    compiler: str | None
    linker: str | None
    icf: str
    policy: str
    dtypes: str
    prepare: bool
    jobs: int | None

    def build_options(self) -> BuildOptions:
        """The part that decides the compiler's flags."""
        from opsieve.runtimes.source.options import Blas, BuildOptions, CpuLevel, Interpreter, QuantizedEngine, Threads

        return BuildOptions(
            interpreter=Interpreter(self.interpreter),
            cpu=CpuLevel(self.cpu),
            blas=Blas(self.blas),
            threads=Threads(self.threads),
            quantized_engine=QuantizedEngine(self.quantized_engine),
            optimisation=f"-O{self.optimise}",
            extra_flags=self.cxx_flag,
            dtype_header=self._dtype_header(),
        )

    def _dtype_header(self) -> str:
        from opsieve.dtypes import KernelDtypes
        from opsieve.emit.dtype_header import dtype_header

        names = [name for name in self.dtypes.split(",") if name.strip()]
        return dtype_header(KernelDtypes.of(names)) if names else ""


_OPTIONS = (
    click.option(
        "--source", type=click.Path(path_type=Path), metavar="DIR", help="The PyTorch source tree to build from."
    ),
    click.option(
        "--interpreter",
        type=click.Choice(["lite", "full"]),
        default="lite",
        show_default=True,
        help="What loads the models: `lite` for .ptl files; `full` for .pt files of torch.jit.save is experimental.",
    ),
    click.option(
        "--cpu",
        type=click.Choice(["default", "avx2", "avx512", "armv8.2"]),
        default="default",
        show_default=True,
        help="The instructions that kernels may use.",
    ),
    click.option(
        "--blas",
        type=click.Choice(["none", "openblas"]),
        default="none",
        show_default=True,
        help="Who multiplies matrices; `none` is PyTorch's own loops.",
    ),
    click.option(
        "--threads",
        type=click.Choice(["openmp", "native", "none"]),
        default="openmp",
        show_default=True,
        help="Who runs loops in parallel.",
    ),
    click.option(
        "--quantized-engine",
        type=click.Choice(["none", "qnnpack"]),
        default="none",
        show_default=True,
        help="What runs models that PyTorch quantized.",
    ),
    click.option(
        "-O",
        "--optimise",
        type=click.Choice(["s", "2", "3"]),
        default="2",
        show_default=True,
        help="For size (s) or speed; kernels of --cpu avx2 and better have their own.",
    ),
    click.option(
        "--cxx-flag", multiple=True, metavar="FLAG", help="A flag for the compiler. May be given several times."
    ),
    click.option("--compiler", metavar="NAME", help="g++, clang++ or a cross compiler; by default $CXX."),
    click.option("--linker", type=click.Choice(LINKERS), help="By default the first of these that is there."),
    click.option(
        "--icf",
        type=click.Choice(["all", "safe", "none"]),
        default="all",
        show_default=True,
        help="Merge equal functions, if the linker can.",
    ),
    click.option(
        "--policy",
        type=click.Choice(["static", "traced"]),
        default="static",
        show_default=True,
        help="Keep what code can call (static), or only the operators that models, --op and --ops-from name (traced).",
    ),
    click.option(
        "--dtypes",
        default="",
        metavar="LIST",
        help="Keep only these element types in kernels: float,long,... By default all of them.",
    ),
    click.option(
        "--prepare",
        is_flag=True,
        help="Compile everything of the source tree now; later builds then only link. Takes no MODEL.",
    ),
    click.option("-j", "--jobs", type=click.IntRange(min=1), help="Compilers at once, by default one per processor."),
)


def source_options(command: _Command) -> _Command:
    """All of them, as arguments with the names of SourceOptions' fields."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
