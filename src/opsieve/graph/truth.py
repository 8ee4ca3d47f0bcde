"""What the installed torch says of its own operators: the ground truth that a graph read from the binary must meet.

The text comes from `torch._C._dispatch_dump` and `_dispatch_dump_table`, in a child process. Its shape is that of
OperatorEntry::dumpState and dumpComputedTable (aten/src/ATen/core/dispatch/OperatorEntry.cpp, 2.13.0). Dispatch keys
are spelled as torch spells them, without the mark `[alias]`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Any

from opsieve.errors import GroundTruthMismatch
from opsieve.installed import TorchInstall, run_child

CPU_KEYS = (
    *("CPU", "MkldnnCPU", "QuantizedCPU", "SparseCPU", "SparseCsrCPU", "NestedTensorCPU", "Undefined"),
    *("BackendSelect", "Conjugate", "Negative", "ZeroTensor", "ADInplaceOrView"),
    *("AutogradCPU", "AutogradOther", "AutogradNestedTensor", "AutocastCPU", "Tracer"),
)
"""The runtime keys that a call can meet where there is no other device than the CPU."""

FALLBACK = "fallback"
"""Provider of a computed table entry: the backend fallback of that key."""

_CHILD = Path(__file__).with_name("_truth_child.py")
_CPP_SUFFIXES = {".cpp", ".cc", ".cxx", ".h", ".hpp", ".cu", ".mm"}
_PLACE = re.compile(r"registered at (?P<file>.+):(?P<line>\d+)")
# As in `Meta (inactive): registered at F:1 :: (Tensor _0) -> Tensor _0 [ boxed unboxed ]`.
_KERNEL = re.compile(
    r"(?P<key>\w+)(?:\[alias\])?(?P<inactive> \(inactive\))?: (?P<place>.*?) :: .* \[ (?P<ways>[a-z ]*)\]"
)
_ENTRY = re.compile(r"(?P<key>\w+): (?P<fallthrough>fallthrough )?(?P<place>.*) \[(?P<reason>[a-z ]+)\]")
_HEADINGS = ("name: ", "schema: ", "debug: ", "alias analysis kind: ")
# Reasons of computeDispatchTableEntryWithDebug whose kernel was registered for one certain alias key.
_PROVIDERS = {
    "math kernel": "CompositeImplicitAutograd",
    "nested kernel": "CompositeImplicitAutogradNestedTensor",
    "autograd kernel": "Autograd",
    "batched kernel": "FuncTorchBatchedDecomposition",
    "backend fallback": FALLBACK,
    "ambiguous autogradother": "ambiguous",
}
_DEFAULT_BACKEND_KEYS = ("CompositeExplicitAutogradNonFunctional", "CompositeExplicitAutograd")


class Kind(StrEnum):
    """What was registered."""

    KERNEL = "kernel"
    FALLTHROUGH = "fallthrough"


class Source(StrEnum):
    """Which language the registration was written in; only C++ ones can be found in a library."""

    CPP = "cpp"
    PYTHON = "python"


@dataclass(frozen=True, slots=True, order=True)
class Registration:
    """One kernel of an operator for a dispatch key; `operator` is empty for the fallback of a whole key."""

    operator: str
    key: str
    kind: Kind
    source: Source
    file: str
    """As the compiler saw it; empty for the three old-style ones (`c10::RegisterOperators`), which keep no place."""

    line: int
    active: bool
    """False when a later registration, usually from Python, took its place."""


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

    @property
    def source_files(self) -> frozenset[str]:
        """The C++ files that hold registrations: their names stand in the library that was built from them."""
        places = (*self.registrations, *self.fallbacks.values())
        return frozenset(r.file for r in places if r.source is Source.CPP and r.file)


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
    registrations = {name: _registrations(name, text) for name, text in dumps.items()}
    return Truth(
        version=answer["version"],
        operators={name: _definition(text) for name, text in dumps.items()},
        registrations=frozenset(r for found in registrations.values() for r in found),
        computed={name: _providers(registrations[name], lines) for name, lines in answer["tables"].items()},
        fallbacks={r.key: r for r in map(_fallback, answer["fallbacks"])},
        interpreter_only=frozenset(answer["interpreter"]) - dumps.keys(),
    )


def compare_registrations(
    found: Mapping[str, Mapping[str, object]], truth: Truth, *, files: Iterable[str] | None = None
) -> tuple[KeyDifference, ...]:
    """Compare `found` (operator -> key -> kernels) with the C++ registrations of `truth`, key by key, sorted by key.

    `files` limits the truth to registrations from these source files (and those without a place), for when only
    some of the libraries of a package were read; see `source_files`.
    """
    wanted = None if files is None else {*files, ""}
    expected: dict[str, set[str]] = defaultdict(set)
    for r in truth.registrations:
        if r.source is Source.CPP and (wanted is None or r.file in wanted):
            expected[r.key].add(r.operator)
    got: dict[str, set[str]] = defaultdict(set)
    for name, kernels in found.items():
        for key in kernels:
            got[key].add(name)
    return tuple(_difference(key, expected[key], got[key]) for key in sorted({*expected, *got}))


def _difference(key: str, expected: set[str], found: set[str]) -> KeyDifference:
    missing, spurious = sorted(expected - found), sorted(found - expected)
    return KeyDifference(key, len(expected), len(found), tuple(missing), tuple(spurious))


def _registrations(operator: str, dump: str) -> list[Registration]:
    lines = [line for line in dump.splitlines() if line and not line.startswith(_HEADINGS)]
    return [_registration(operator, line) for line in lines]


def _registration(operator: str, text: str) -> Registration:
    found = _match(_KERNEL, text)
    kind = Kind.FALLTHROUGH if "fallthrough" in found["ways"].split() else Kind.KERNEL
    source, file, line = _place(found["place"])
    return Registration(operator, found["key"], kind, source, file, line, active=not found["inactive"])


def _fallback(text: str) -> Registration:
    found = _match(_ENTRY, text)
    kind = Kind.FALLTHROUGH if found["fallthrough"] else Kind.KERNEL
    source, file, line = _place(found["place"])
    return Registration("", found["key"], kind, source, file, line, active=True)


def _definition(dump: str) -> Source:
    debug = next((line for line in dump.splitlines() if line.startswith("debug: ")), "debug: ")
    return _place(debug.removeprefix("debug: "))[0]


def _place(text: str) -> tuple[Source, str, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        return Source.CPP, "", 0
    file = found["file"]
    source = Source.CPP if PurePosixPath(file).suffix in _CPP_SUFFIXES else Source.PYTHON
    return source, file, int(found["line"])


def _providers(registrations: Iterable[Registration], table: Iterable[str]) -> dict[str, str]:
    active = {r.key: r for r in registrations if r.active}
    entries = (_match(_ENTRY, line) for line in table)
    return {found["key"]: _provider(found, active) for found in entries}


def _provider(entry: re.Match[str], active: Mapping[str, Registration]) -> str:
    reason = entry["reason"]
    if reason == "kernel":
        return entry["key"]
    if reason == "default backend kernel":
        # The reason is the same for two alias keys; only the place tells them apart.
        place = _place(entry["place"])
        for key in _DEFAULT_BACKEND_KEYS:
            if key in active and (active[key].source, active[key].file, active[key].line) == place:
                return key
    if reason not in _PROVIDERS:
        raise GroundTruthMismatch(f"torch gives an unknown reason for a kernel: {entry.string[:200]!r}")
    return _PROVIDERS[reason]


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise GroundTruthMismatch(
            f"torch describes its dispatcher in a way we do not know: {text[:200]!r}",
            remedy="use torch 2.13.0, or tell us about this version",
        )
    return found
