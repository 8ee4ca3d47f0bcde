"""PyTorch's exceptions in the words of this runtime: what it leaves out, and how to add it.

Every exception of PyTorch gets its message in one place, and every error of its TorchScript compiler in another. Both
are made to pass the message through `opsieve::explained` (cpp/missing.cpp), so that an application has nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass

_HEADER = "#include <opsieve/explain.h>\n#line 1\n"


@dataclass(frozen=True, slots=True)
class Change:
    """One expression of one source, and what it becomes."""

    source: str
    old: str
    new: str


CHANGES = (
    Change("c10/util/Exception.cpp", "msg_(std::move(msg))", "msg_(::opsieve::explained(std::move(msg)))"),
    Change(
        "torch/csrc/jit/frontend/error_report.cpp",
        "the_message = msg.str();",
        "the_message = ::opsieve::explained(msg.str());",
    ),
)
"""The same text in 1.13.1 and 2.6.0."""


def changed_sources() -> frozenset[str]:
    """The sources that `explaining` may change."""
    return frozenset(change.source for change in CHANGES)


def explaining(source: str, text: str) -> str:
    """The text of a source whose messages are explained.

    A tree that words this otherwise keeps its text: its exceptions then say what PyTorch says, and the runner explains
    them itself.
    """
    changed = text
    for change in CHANGES:
        if change.source == source:
            changed = changed.replace(change.old, change.new)
    return _HEADER + changed if changed != text else text
