"""Observed dispatches as values, and what a graph must cover to hold them."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from opsieve.installed import TorchInstall, run_child

ROOT = Path(__file__).parents[3]
_CHILD = Path(__file__).with_name("run_calls.py")
# Dispatch keys that bring kernels of their own into a call, and the word for what a graph needs to hold those.
NEEDS = {
    "SparseCPU": "sparse",
    "SparseCsrCPU": "sparse",
    "QuantizedCPU": "quantized",
    "MkldnnCPU": "mkldnn",
    "NestedTensorCPU": "nested",
    "Conjugate": "conjugate",
    "Negative": "negative",
    "ZeroTensor": "zerotensor",
    "AutocastCPU": "autocast",
}
# The same for the namespaces of custom classes: weights packed for quantised kernels have virtual methods.
CLASS_NEEDS = {"quantized": "quantized", "rnn": "quantized", "sparse": "quantized"}
_PLAIN = {
    "CPU",
    "BackendSelect",
    "ADInplaceOrView",
    "AutogradCPU",
    "AutogradOther",
    "AutogradMeta",
    "AutogradNestedTensor",
}


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """One operator dispatched from inside another one."""

    parent: str
    child: str
    needs: tuple[str, ...]
    """What the parent's call met beyond dense CPU tensors: a value of NEEDS or CLASS_NEEDS, `grad` (an input
    requires grad), `backward` (the parent is the gradient of that operator), or any other dispatch key. Sorted."""


@dataclass(frozen=True, slots=True)
class Observations:
    """What one mode showed."""

    mode: str
    targets: int
    calls: int
    raised: int
    crashed: tuple[str, ...]
    edges: Mapping[Edge, int]
    """Edge -> how often."""

    outermost: Mapping[tuple[str, tuple[str, ...]], int]
    """(operator, needs) of calls made from outside any operator -> how often."""

    @property
    def operators(self) -> frozenset[str]:
        """Every operator seen."""
        inside = {name for edge in self.edges for name in (edge.parent, edge.child)}
        return frozenset(inside | {name for name, _ in self.outermost})


def observe(
    install: TorchInstall, recorder: Path, mode: str, folder: Path, *, workers: int = 2, timeout: float = 900
) -> Observations:
    """Run one mode in a child process, its records in `folder` (must be new)."""
    folder.mkdir(parents=True)
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    # Two OpenMP pools on two cores: waiting threads must not spin.
    environment = {"PYTHONPATH": path, "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "PASSIVE"}
    request = {"recorder": str(recorder), "mode": mode, "folder": str(folder), "workers": workers}
    answer = run_child(install.python, _CHILD, request, environment=environment, timeout=timeout)
    edges, outermost = read_records(folder.glob("*.tsv"))
    counts = (answer["targets"], answer["calls"], answer["raised"], tuple(answer["crashed"]))
    return Observations(mode, *counts, edges, outermost)


def read_records(files: Iterable[Path]) -> tuple[dict[Edge, int], dict[tuple[str, tuple[str, ...]], int]]:
    """Add up what the recorder wrote (format: recorder_flush in recorder.cpp)."""
    edges: dict[Edge, int] = defaultdict(int)
    outermost: dict[tuple[str, tuple[str, ...]], int] = defaultdict(int)
    for file in files:
        for line in file.read_text().splitlines():
            kind, operator, mode, keys, classes, *rest = line.split("\t")
            needs = _needs(mode, keys, classes)
            if kind == "edge":
                child, _adopted, count = rest
                edges[Edge(operator, child, needs)] += int(count)
            else:
                outermost[operator, needs] += int(rest[0])
    return dict(edges), dict(outermost)


def _needs(mode: str, keys: str, classes: str) -> tuple[str, ...]:
    special = {NEEDS.get(key, key) for key in keys.split(",") if key and key not in _PLAIN}
    special.update(CLASS_NEEDS.get(name, name) for name in classes.split(",") if name)
    return tuple(sorted(special | ({mode} if mode != "-" else set())))
