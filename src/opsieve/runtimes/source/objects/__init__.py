"""Compiling source files into a store of objects kept by content: what was compiled once stays compiled.

with ObjectStore.of_user() as store:
    compiled = compile_all(jobs, store, Compiler.find(), progress=progress)
    link(compiled.require())
"""

from opsieve.runtimes.source.objects.compiler import Compiler
from opsieve.runtimes.source.objects.compiling import Compiled, compile_all
from opsieve.runtimes.source.objects.errors import (
    CompileFailed,
    CompilerStopped,
    StoreFull,
    UnusableFlag,
    UnusableStore,
)
from opsieve.runtimes.source.objects.failures import CompileFailure, cause, lacks_header
from opsieve.runtimes.source.objects.job import CompileJob
from opsieve.runtimes.source.objects.store import DEFAULT_LIMIT, ObjectStore

__all__ = [
    "DEFAULT_LIMIT",
    "CompileFailed",
    "CompileFailure",
    "CompileJob",
    "Compiled",
    "Compiler",
    "CompilerStopped",
    "ObjectStore",
    "StoreFull",
    "UnusableFlag",
    "UnusableStore",
    "cause",
    "compile_all",
    "lacks_header",
]
