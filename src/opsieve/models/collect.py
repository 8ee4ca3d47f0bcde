"""Gathers the operator calls a reader finds, in any order, into the sorted value that all readers return."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from opsieve.errors import InvalidModel, UnknownOperator
from opsieve.models.needs import ModelNeeds, Reach, RootOperator, Use
from opsieve.models.torch_facts import reach_of, replaced_by
from opsieve.operators import OperatorName

MAX_USES = 1_000_000
"""A file can refer to one list of calls from many methods, so its size alone does not bound the uses."""


class NeedsCollector:
    """Everything one model file calls, while it is being read."""

    def __init__(self, path: Path, *, file_version: int | None = None) -> None:
        """`file_version` is the operator version the file was written with; PyTorch upgrades older ones."""
        self._path = path
        self._file_version = file_version
        self._uses: dict[OperatorName, set[Use]] = defaultdict(set)
        self._reach: dict[OperatorName, Reach] = {}
        self._all_overloads: set[OperatorName] = set()
        self._added = 0
        self.methods: set[str] = set()
        self.custom_classes: set[str] = set()
        self.notes: list[str] = []

    def add(self, name: OperatorName, use: Use, *, all_overloads: bool = False, reach: Reach | None = None) -> None:
        """Note one call, as PyTorch will make it; `reach` overrules what we know of PyTorch 2.13.0."""
        self._added += 1
        if self._added > MAX_USES:
            raise InvalidModel("the model calls too many operators", where=self._path, expected=f"at most {MAX_USES}")
        if all_overloads:
            name = OperatorName(name.namespace, name.base)
            self._all_overloads.add(name)
        self._uses[name].add(use)
        if reach is not None:
            self._reach[name] = reach

    def add_written(self, text: str, use: Use, *, all_overloads: bool = False) -> None:
        """Note one call as the file has it, together with what PyTorch makes of it if the file is old.

        Raises InvalidModel when `text` is no operator name.
        """
        try:
            name = OperatorName.parse(text)
        except UnknownOperator as error:
            raise InvalidModel(error.problem, where=f"{self._path}: {use.place}", expected=error.expected) from error
        self.add(name, use, all_overloads=all_overloads)
        if self._file_version is not None:
            for other in replaced_by(name, all_overloads=all_overloads, file_version=self._file_version):
                self.add(other, use)

    def needs(self, file_format: str, fingerprint: str) -> ModelNeeds:
        """The sorted value. A root that stands for all overloads takes in those of its name that stand alone."""
        for name in [name for name in self._uses if name not in self._all_overloads]:
            base = OperatorName(name.namespace, name.base)
            if base in self._all_overloads:
                self._uses[base] |= self._uses.pop(name)
        return ModelNeeds(
            path=str(self._path),
            format=file_format,
            fingerprint=fingerprint,
            roots=tuple(self._root(name) for name in sorted(self._uses)),
            methods=tuple(sorted(self.methods)),
            custom_classes=tuple(sorted(self.custom_classes)),
            notes=tuple(self.notes),
        )

    def _root(self, name: OperatorName) -> RootOperator:
        all_overloads = name in self._all_overloads
        reach = (None if all_overloads else self._reach.get(name)) or reach_of(name, all_overloads=all_overloads)
        return RootOperator(name, all_overloads, reach, tuple(sorted(self._uses[name])))
