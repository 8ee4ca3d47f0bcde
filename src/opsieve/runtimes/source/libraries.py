"""What a runtime is linked with beside PyTorch's own code."""

from __future__ import annotations

from opsieve.runtimes.source.options import Blas, BuildOptions, Threads


def libraries(options: BuildOptions) -> tuple[str, ...]:
    """Flags for the compiler driver, in the order of the link."""
    return (
        *(("-fopenmp",) if options.threads is Threads.OPENMP else ()),
        *(("-lopenblas",) if options.blas is Blas.OPENBLAS else ()),
        "-lcpuinfo",
        "-ldl",
        "-lpthread",
        "-lm",
    )
