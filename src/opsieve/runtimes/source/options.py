"""What a source build is asked for: interpreter, kernels, BLAS, threads, optimisation. It decides every flag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Interpreter(StrEnum):
    """Which of TorchScript's interpreters the runtime has."""

    LITE = "lite"
    """Loads `.ptl` files: bytecode, no compiler."""

    FULL = "full"
    """Loads `.pt` files as `torch.jit.save` writes them."""


class CpuLevel(StrEnum):
    """The instructions that the kernels may use."""

    DEFAULT = "default"
    """What the compiler's target has: any processor of the architecture."""

    AVX2 = "avx2"
    AVX512 = "avx512"
    ARMV8_2 = "armv8.2"


class Blas(StrEnum):
    """Who multiplies matrices."""

    NONE = "none"
    """PyTorch's own loops."""

    OPENBLAS = "openblas"


class Threads(StrEnum):
    """Who runs loops in parallel."""

    OPENMP = "openmp"
    NATIVE = "native"
    """PyTorch's own pool, on top of the library pthreadpool."""

    NONE = "none"
    """One thread: the code for OpenMP, compiled without it."""


class QuantizedEngine(StrEnum):
    """Who multiplies matrices of 8-bit integers."""

    NONE = "none"
    """Nobody: models with packed quantized weights do not load."""

    QNNPACK = "qnnpack"
    """The library in PyTorch's own tree, and what PyTorch uses on phones. It runs on a pool of the library pthreadpool,
    which gets as many threads as OpenMP is told to use."""


@dataclass(frozen=True, slots=True)
class CpuFlags:
    """How the kernel files of one level are compiled."""

    capability: str
    flags: tuple[str, ...]


CPU_FLAGS: dict[CpuLevel, CpuFlags] = {
    CpuLevel.DEFAULT: CpuFlags("DEFAULT", ()),
    CpuLevel.AVX2: CpuFlags("AVX2", ("-O3", "-mavx2", "-mfma", "-mf16c")),
    CpuLevel.AVX512: CpuFlags(
        "AVX512", ("-O3", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mfma", "-mf16c", "-mavx2")
    ),
    CpuLevel.ARMV8_2: CpuFlags("DEFAULT", ("-O3", "-march=armv8.2-a+fp16+dotprod")),
}
"""As cmake/Codegen.cmake of PyTorch compiles its copies of `native/cpu/*`. We compile one copy, and name it DEFAULT:
there is nothing to choose from at run time, and no code that chooses."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """One set of flags. Two builds with equal options share every object."""

    interpreter: Interpreter = Interpreter.LITE
    cpu: CpuLevel = CpuLevel.DEFAULT
    blas: Blas = Blas.NONE
    threads: Threads = Threads.OPENMP
    quantized_engine: QuantizedEngine = QuantizedEngine.NONE
    optimisation: str = "-O2"
    extra_flags: tuple[str, ...] = ()
    """The user's own; they come last."""

    position_independent: bool = False
    """For a shared library, or a program that the system loads at a random address."""

    dtype_header: str = ""
    """The text of `ATen/selected_mobile_ops.h`, for the files that dispatch on dtypes; empty keeps every dtype."""

    @property
    def config_values(self) -> dict[str, str]:
        """What the templates of the configured headers are given."""
        return {
            "AT_PARALLEL_OPENMP": str(int(self.threads is not Threads.NATIVE)),
            "AT_PARALLEL_NATIVE": str(int(self.threads is Threads.NATIVE)),
            "AT_BUILD_WITH_BLAS": str(int(self.blas is Blas.OPENBLAS)),
        }

    @property
    def definitions(self) -> dict[str, str]:
        """The macros of the command line, by name."""
        flags = [flag[2:] for flag in self.flags("17", is_kernel=False) if flag.startswith("-D")]
        flags += [flag[2:] for flag in self.engine_flags]
        return {name: value for name, _, value in (flag.partition("=") for flag in flags)}

    @property
    def engine_flags(self) -> tuple[str, ...]:
        """What the sources are told besides that ask for the quantized engine or the pool of threads; to all others it
        makes no difference."""
        engine = self.quantized_engine is QuantizedEngine.QNNPACK
        pool = engine or self.threads is Threads.NATIVE
        return (*(("-DUSE_PYTORCH_QNNPACK",) if engine else ()), *(("-DUSE_PTHREADPOOL",) if pool else ()))

    def flags(self, standard: str, *, is_kernel: bool) -> tuple[str, ...]:
        """The compiler's flags for a file, include folders excepted; `is_kernel` for those below `native/cpu`.

        `standard` is the tree's own C++ standard, such as "17".
        """
        cpu = CPU_FLAGS[self.cpu] if is_kernel else CPU_FLAGS[CpuLevel.DEFAULT]
        return (
            f"-std=gnu++{standard}",
            self.optimisation,
            *_COMMON,
            *(("-fopenmp",) if self.threads is Threads.OPENMP else ()),
            *(("-fPIC",) if self.position_independent else ()),
            *(("-DBUILD_LITE_INTERPRETER",) if self.interpreter is Interpreter.LITE else ()),
            "-DCPU_CAPABILITY=DEFAULT",
            f"-DCPU_CAPABILITY_{cpu.capability}",
            *cpu.flags,
            *self.extra_flags,
        )


_COMMON = (
    "-w",  # PyTorch's warnings are not our users' business
    "-ffunction-sections",
    "-fdata-sections",
    "-fvisibility-inlines-hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-DNDEBUG",
    "-DC10_MOBILE=1",
    "-DNO_EXPORT",
    "-DAT_PER_OPERATOR_HEADERS",
    "-DFMT_HEADER_ONLY=1",
    "-DHAVE_MMAP=1",
    "-DHAVE_SHM_OPEN=1",
    "-DHAVE_SHM_UNLINK=1",
    "-D_FILE_OFFSET_BITS=64",
    "-DMINIZ_DISABLE_ZIP_READER_CRC32_CHECKS",
    "-DUSE_EXTERNAL_MZCRC",
    "-DSUPPORTS_BACKTRACE=0",
    "-DCAFFE2_BUILD_MAIN_LIB",
)
"""What PyTorch's CMake files set for a static mobile build on Linux."""


def is_kernel_file(name: str) -> bool:
    """Whether PyTorch compiles this file once per processor level."""
    return "/native/cpu/" in f"/{name}" or Path(name).name.startswith("UfuncCPUKernel_")
