"""Sources that register something which no symbol refers to, and so have to be linked by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SeedRule:
    """A text that marks such a source, and why a runtime needs it."""

    pattern: re.Pattern[str]
    reason: str


def _fallback(key: str) -> re.Pattern[str]:
    return re.compile(rf"TORCH_LIBRARY_IMPL\(\s*_\s*,\s*{key}\s*,")


SEED_RULES = (
    SeedRule(_fallback("BackendSelect"), "calls of operators without tensors have to find their kernel"),
    SeedRule(_fallback("AutogradCPU"), "calls in gradient mode have to pass on to the kernels"),
    SeedRule(
        _fallback("Conjugate"), "lazily conjugated tensors have to be made real for kernels that do not know them"
    ),
    SeedRule(_fallback("Negative"), "lazily negated tensors have to be made real for kernels that do not know them"),
    SeedRule(_fallback("ZeroTensor"), "tensors of zeros without memory have to be made real"),
    SeedRule(re.compile(r"\bTensorMaker::make_tensor\("), "applications make tensors of their data: at::from_blob"),
    SeedRule(re.compile(r"C10_REGISTER_GUARD_IMPL\(\s*CPU\s*,"), "every device guard asks for that of the CPU"),
)
"""Which keys a tensor can have in a runtime without functorch, Python or tracing."""

ASSEMBLER = frozenset({".S", ".s"})
"""Suffixes of files whose names of functions come out of macros. They are few and small, and what nothing refers to
goes at the link."""

REGISTRAR = "opsieve/registrar.cpp"


def seed_sources(sources: Mapping[str, Path]) -> dict[str, str]:
    """The sources to link by name, each with the reason."""
    found = {REGISTRAR: "walks the table of registrations"}
    for name, path in sources.items():
        if path.suffix in ASSEMBLER:
            found[name] = "what it defines, only the assembler can tell"
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for rule in SEED_RULES:
            if rule.pattern.search(text):
                found.setdefault(name, rule.reason)
    return found
