"""The text in which PyTorch's dispatcher describes itself, read into values.

Its shape is that of OperatorEntry::dumpState and dumpComputedTable (aten/src/ATen/core/dispatch/OperatorEntry.cpp,
2.13.0). Dispatch keys are spelled as torch spells them, without the mark `[alias]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from opsieve.errors import GroundTruthMismatch

FALLBACK = "fallback"
"""Provider of a computed table entry: the backend fallback of that key."""

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


def read_registrations(operator: str, dump: str) -> list[Registration]:
    """The kernels of an operator, from its `_dispatch_dump`. Raises GroundTruthMismatch for a line of another shape."""
    lines = [line for line in dump.splitlines() if line and not line.startswith(_HEADINGS)]
    return [_registration(operator, line) for line in lines]


def _registration(operator: str, text: str) -> Registration:
    found = _match(_KERNEL, text)
    kind = Kind.FALLTHROUGH if "fallthrough" in found["ways"].split() else Kind.KERNEL
    source, file, line = _place(found["place"])
    return Registration(operator, found["key"], kind, source, file, line, active=not found["inactive"])


def read_fallback(text: str) -> Registration:
    """A backend fallback, from a line of the computed table of an operator that has no kernel."""
    found = _match(_ENTRY, text)
    kind = Kind.FALLTHROUGH if found["fallthrough"] else Kind.KERNEL
    source, file, line = _place(found["place"])
    return Registration("", found["key"], kind, source, file, line, active=True)


def read_definition(dump: str) -> Source:
    """Which language the schema was defined in, from an operator's `_dispatch_dump`."""
    debug = next((line for line in dump.splitlines() if line.startswith("debug: ")), "debug: ")
    return _place(debug.removeprefix("debug: "))[0]


def _place(text: str) -> tuple[Source, str, int]:
    found = _PLACE.fullmatch(text)
    if found is None:
        return Source.CPP, "", 0
    file = found["file"]
    source = Source.CPP if PurePosixPath(file).suffix in _CPP_SUFFIXES else Source.PYTHON
    return source, file, int(found["line"])


def read_providers(registrations: Iterable[Registration], table: Iterable[str]) -> dict[str, str]:
    """Runtime key -> the key whose kernel runs, from lines of an operator's `_dispatch_dump_table`."""
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
