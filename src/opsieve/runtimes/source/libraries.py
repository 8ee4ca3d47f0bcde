"""What a runtime is linked with beside PyTorch's own code."""

from __future__ import annotations

from opsieve.runtimes.source.options import Blas, BuildOptions, CpuLevel, Threads

_VECTORISED = (CpuLevel.AVX2, CpuLevel.AVX512)
"""The levels whose vector classes call SLEEF for what is no instruction."""


def libraries(options: BuildOptions) -> tuple[str, ...]:
    """Flags for the compiler driver, in the order of the link."""
    pool = "-DUSE_PTHREADPOOL" in options.engine_flags
    return (
        *(("-fopenmp",) if options.threads is Threads.OPENMP else ()),
        *(("-lpthreadpool",) if pool else ()),
        *(("-lopenblas",) if options.blas is Blas.OPENBLAS else ()),
        *(("-lsleef",) if options.cpu in _VECTORISED else ()),
        "-lcpuinfo",
        "-ldl",
        "-lpthread",
        "-lm",
    )
