"""What the installed torch says of its own operators: the ground truth that a graph read from the binary must meet.

It comes from `torch._C._dispatch_dump` and `_dispatch_dump_table`, in a child process.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsieve.code.elf import ElfFile
from opsieve.graph.dispatcher_dump import (
    Registration,
    Source,
    read_definition,
    read_fallback,
    read_providers,
    read_registrations,
)
from opsieve.graph.symbols import CATCH_ALL, INTERPRETER
from opsieve.installed import TorchInstall, run_child

CPU_KEYS = (
    *("CPU", "MkldnnCPU", "QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU", "Undefined"),
    *("BackendSelect", "Conjugate", "Negative", "ZeroTensor", "ADInplaceOrView"),
    *("AutogradCPU", "AutogradOther", "AutogradNestedTensor", "AutocastCPU", "Tracer"),
)
"""The runtime keys that a call can meet where there is no other device than the CPU."""

ALL_OPERATORS = "_::*"
"""The operator for which a backend fallback is registered, as `TORCH_LIBRARY_IMPL(_, KEY, m)` spells it."""

_CHILD = Path(__file__).with_name("_truth_child.py")
_COMPOSITE_KEYS = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")


@dataclass(frozen=True, slots=True)
class Truth:
    """All that one torch says of its operators."""

    version: str
    operators: Mapping[str, Source]
    """Every operator that has a schema, and where the schema was defined."""

    registrations: frozenset[Registration]
    computed: Mapping[str, Mapping[str, str]]
    """Operator -> key of CPU_KEYS -> the key whose kernel runs, FALLBACK, or absent when a call would fail."""

    fallbacks: Mapping[str, Registration]
    """Key -> its backend fallback."""

    interpreter_only: frozenset[str]
    """Operators of the TorchScript interpreter that the dispatcher does not have."""


@dataclass(frozen=True, slots=True)
class KeyDifference:
    """How what was found for one dispatch key differs from the truth."""

    key: str
    expected: int
    found: int
    missing: tuple[str, ...]
    """Operators that torch has for this key and that were not found, sorted."""

    spurious: tuple[str, ...]
    """Operators that were found and that torch does not have, sorted."""


def read_truth(install: TorchInstall, *, timeout: float = 120.0) -> Truth:
    """Ask `install`, in a child process (about 2 s, 300 MB).

    Raises ChildFailed when that torch cannot be asked, GroundTruthMismatch when its answer has another shape.
    """
    return parse_truth(run_child(install.python, _CHILD, {"keys": CPU_KEYS}, timeout=timeout))


def parse_truth(answer: Mapping[str, Any]) -> Truth:
    """Turn the answer of the child into values. Raises GroundTruthMismatch for a line of unknown shape."""
    dumps: Mapping[str, str] = answer["dumps"]
    registrations = {name: read_registrations(name, text) for name, text in dumps.items()}
    return Truth(
        version=answer["version"],
        operators={name: read_definition(text) for name, text in dumps.items()},
        registrations=frozenset(r for found in registrations.values() for r in found),
        computed={name: read_providers(registrations[name], lines) for name, lines in answer["tables"].items()},
        fallbacks={r.key: r for r in map(read_fallback, answer["fallbacks"])},
        interpreter_only=frozenset(answer["interpreter"]) - dumps.keys(),
    )


def compare_registrations(
    found: Mapping[str, Mapping[str, object]], truth: Truth, *, files: Iterable[str] | None = None
) -> tuple[KeyDifference, ...]:
    """Compare `found` (operator -> key -> kernels) with what C++ registered according to `truth`, sorted by key.

    In `found` the operator ALL_OPERATORS stands for the fallback of a key, CATCH_ALL for "no key named" and
    INTERPRETER for what the dispatcher does not have. `files` limits the truth to registrations from these source
    files (and those without a place): see `source_files_in`, for when only one library of a package was read.
    """
    wanted = None if files is None else {*files, ""}
    expected: dict[str, set[str]] = defaultdict(set)
    for r in (*truth.registrations, *truth.fallbacks.values()):
        if r.source is Source.CPP and (wanted is None or r.file in wanted):
            expected[r.key].add(r.operator or ALL_OPERATORS)
    expected[INTERPRETER].update(truth.interpreter_only)
    got: dict[str, set[str]] = defaultdict(set)
    for name, kernels in found.items():
        for key in kernels:
            got[_key_in_truth(name, expected) if key == CATCH_ALL else key].add(name)
    return tuple(_difference(key, expected[key], got[key]) for key in sorted({*expected, *got}))


def source_files_in(library: Path, truth: Truth) -> frozenset[str]:
    """The C++ files with registrations that `library` was built from: it holds their names, for torch to report them.

    Reads the constants of the library (18 MB). Raises InvalidLibrary if it is no ELF file.
    """
    elf = ElfFile(library)
    constants = elf.contents(elf.section(".rodata")).tobytes()
    files = {r.file for r in (*truth.registrations, *truth.fallbacks.values()) if r.source is Source.CPP and r.file}
    return frozenset(file for file in files if file.encode() + b"\0" in constants)


def _key_in_truth(operator: str, expected: Mapping[str, set[str]]) -> str:
    """Where torch files a kernel whose registration names no key.

    Under CompositeImplicitAutograd, unless the kernel itself was given a key (`torch::dispatch`), which the names in
    the binary do not tell.
    """
    keys = (key for key in _COMPOSITE_KEYS if operator in expected.get(key, ()))
    return next(keys, _COMPOSITE_KEYS[0])


def _difference(key: str, expected: set[str], found: set[str]) -> KeyDifference:
    missing, spurious = sorted(expected - found), sorted(found - expected)
    return KeyDifference(key, len(expected), len(found), tuple(missing), tuple(spurious))
