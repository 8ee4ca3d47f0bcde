"""The faults a user can meet. Every one says what is wrong, where, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path


class OpsieveError(Exception):
    """A fault in what the user gave us. The command line prints it and ends with `exit_status`.

    `problem` is one sentence; `where` is a file, with an offset, line or member if one is known;
    `expected` says what would have been right; `remedy` says what to do next.
    """

    exit_status = 2

    def __init__(
        self,
        problem: str,
        *,
        where: str | Path | None = None,
        expected: str | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.where = None if where is None else str(where)
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [f"{self.where}: {self.problem}" if self.where else self.problem]
        if self.expected:
            lines.append(f"expected: {self.expected}")
        if self.remedy:
            lines.append(f"try: {self.remedy}")
        return "\n".join(lines)


class InvalidModel(OpsieveError):
    """A model file that is broken, hostile, or of a format we do not read."""


class InvalidFile(OpsieveError):
    """Any other input file (operator list, saved selection, inputs) that we cannot accept."""


class InvalidLibrary(OpsieveError):
    """A shared library that is not well-formed ELF."""


class UnsupportedLibrary(OpsieveError):
    """A well-formed library that we refuse to analyse, because we could not do it soundly."""


class InvalidSourceTree(OpsieveError):
    """A folder that is no PyTorch source tree, or a tree that is broken, too old or too new."""


class SourceUnavailable(OpsieveError):
    """The source of a PyTorch version that cannot be had here: no package of it, no network, no space."""


class UnknownOperator(OpsieveError):
    """An operator name that the runtime does not have, or that is no operator name at all."""


class MissingInstallation(OpsieveError):
    """Something this machine lacks: PyTorch, a compiler, a package."""


class OutputExists(OpsieveError):
    """The output is already there, and `--force` was not given."""


class GroundTruthMismatch(OpsieveError):
    """The analysis of a library disagrees with what that library says of itself at run time."""


class BuildFailed(OpsieveError):
    """Compiling or linking a runtime did not succeed."""
