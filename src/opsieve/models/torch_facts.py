"""What PyTorch knows of operators, written down from the torch we support (scripts/write_torch_facts.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from opsieve.models.needs import Reach
from opsieve.operators import OperatorName


@dataclass(frozen=True, slots=True)
class _Upgrade:
    since: int
    calls: tuple[OperatorName, ...]


@dataclass(frozen=True, slots=True)
class _Facts:
    interpreter_operators: frozenset[str]
    interpreter_bases: frozenset[str]
    """Base names that have no overload in the dispatcher."""

    foldable_operators: tuple[OperatorName, ...]
    upgrades: dict[OperatorName, _Upgrade]


@cache
def _facts() -> _Facts:
    raw = json.loads(files("opsieve.models").joinpath("torch_facts.json").read_bytes())
    operators = frozenset(raw["interpreter_operators"])
    bases = {name.partition(".")[0] for name in operators}
    return _Facts(
        operators,
        frozenset(bases.difference(raw["mixed_bases"])),
        tuple(map(OperatorName.parse, raw["foldable_operators"])),
        {
            OperatorName.parse(name): _Upgrade(entry["since"], tuple(map(OperatorName.parse, entry["calls"])))
            for name, entry in raw["upgraders"].items()
        },
    )


def reach_of(name: OperatorName, *, all_overloads: bool = False) -> Reach:
    """Where a call of `name` goes. A name that PyTorch 2.13.0 does not have is taken to be in the dispatcher.

    With `all_overloads`, one overload in the dispatcher is enough.
    """
    if all_overloads:
        interpreter = name.base_name in _facts().interpreter_bases
    else:
        interpreter = str(name) in _facts().interpreter_operators
    return Reach.INTERPRETER if interpreter else Reach.DISPATCHER


def replaced_by(name: OperatorName, *, all_overloads: bool, file_version: int) -> Iterator[OperatorName]:
    """What PyTorch calls in the place of `name` when the file is older than a change of that operator."""
    for changed, upgrade in _facts().upgrades.items():
        same = changed.base_name == name.base_name if all_overloads else changed == name
        if same and file_version < upgrade.since:
            yield from upgrade.calls


def foldable_overloads(base_name: str) -> Iterator[OperatorName]:
    """The overloads of `base_name` that PyTorch evaluates while it compiles TorchScript, so that no graph has them."""
    for name in _facts().foldable_operators:
        if name.base_name == base_name:
            yield name
