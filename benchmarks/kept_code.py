"""Where the code that stays comes from: PyTorch itself, its math libraries, or the models.

    python -m benchmarks.kept_code

Bytes of functions of `libtorch_cpu.so`; the file also has data, tables, and the rest of each page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from benchmarks.models import write_samples
from benchmarks.report import parser, report
from opsieve.code.elf import ElfFile
from opsieve.graph.load import LIBRARY, load_op_graph
from opsieve.graph.op_graph import OpGraph
from opsieve.installed import TorchInstall, find_torch
from opsieve.models import ModelNeeds, TorchOverloads, read_models
from opsieve.runtimes.wheel.build import keep_for
from opsieve.runtimes.wheel.roots import loaded_libraries
from opsieve.select.choose import choose

Row = tuple[str | int | float, ...]
FAMILIES = {"oneDNN": (b"dnnl", b"Xbyak"), "MKL": (b"mkl", b"owng", b"compute_col")}
"""Parts of the symbol names of each math library; what has no such name counts as PyTorch."""


def main() -> None:
    """Measure and report."""
    options = parser(__doc__).parse_args()
    install = find_torch()
    code = _Code(load_op_graph(install), install, loaded_libraries(install))
    with tempfile.TemporaryDirectory(prefix="opsieve-kept-") as folder:
        samples = write_samples(Path(folder))
        needs = read_models([sample.path for sample in samples], overloads=TorchOverloads(install))
    rows = [
        code.everything(),
        code.kept_for("no operator at all", None),
        code.kept_for("for PyTorch itself", ()),
        *(code.kept_for(sample.title, [need]) for sample, need in zip(samples, needs, strict=True)),
        code.kept_for("all four models", needs),
    ]
    columns = ("kept", "operators", "code, MB", *(f"{family}, MB" for family in FAMILIES))
    report(columns, [tuple(map(_shown, row)) for row in rows], {"columns": columns, "rows": rows}, options.json)


def _shown(value: str | int | float) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


@dataclass(frozen=True, eq=False)
class _Code:
    """The code of the library, to be measured."""

    graph: OpGraph
    install: TorchInstall
    loaded: tuple[Path, ...]

    def everything(self) -> Row:
        """The row of the full library."""
        kept = np.ones(len(self.graph.code.functions), bool)
        return ("the full library", len(self.graph.operators), *self._megabytes(kept))

    def kept_for(self, title: str, models: Sequence[ModelNeeds] | None) -> Row:
        """The row of what stays for some models; None stands for "not even what PyTorch itself needs"."""
        selection, _ = choose(self.graph, self.install.version, models or ())
        if models is None:
            selection = replace(selection, operators=())
        kept = keep_for(self.install, self.graph, selection, (), lambda: self.loaded).kept
        return (title, len(selection.operators), *self._megabytes(kept))

    def _megabytes(self, kept: np.ndarray) -> tuple[float, ...]:
        """Of all code and of each family."""
        functions = self.graph.code.functions
        sizes = (functions.ends - functions.starts) / 1e6
        return (float(sizes[kept].sum()), *(float(sizes[kept & family].sum()) for family in self._families))

    @cached_property
    def _families(self) -> tuple[np.ndarray, ...]:
        """One flag per function for each family."""
        names = ElfFile(self.install.library(LIBRARY)).names_of(self.graph.code.functions.names)
        return tuple(np.array([any(part in name for part in parts) for name in names]) for parts in FAMILIES.values())


if __name__ == "__main__":
    main()
