"""From what models call and users ask for to the symbols that the linker has to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from opsieve.errors import InvalidModel, UnknownOperator
from opsieve.graph.framework import executor_operators
from opsieve.graph.scopes import Scope, selected_keys
from opsieve.models.needs import ModelNeeds
from opsieve.operators import OperatorName
from opsieve.runtimes.source.association.sites import SiteKind, Sites
from opsieve.runtimes.source.options import Interpreter, QuantizedEngine
from opsieve.select.choose import ExtraOperator, implied_scopes
from opsieve.select.selection import Reason, ReasonKind, SelectedOperator, join_operators


@dataclass(frozen=True)
class Wanted:
    """The operators that are asked for by name, and what the linker is told."""

    roots: tuple[SelectedOperator, ...]
    missing: tuple[SelectedOperator, ...]
    """Operators that the models call and this source tree does not have."""

    symbols: tuple[str, ...]
    """To keep, whatever refers to them; sorted."""

    sources: tuple[str, ...]
    """The files that define them; sorted."""

    scopes: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Symbols to leave out although something refers to them: operators that the policy does not want, and kernels for
    keys that tensors of the scopes do not have. Sorted."""


class Policy(StrEnum):
    """What a runtime keeps."""

    STATIC = "static"
    """Everything that live code can dispatch: what the link finds. Sound."""

    TRACED = "traced"
    """Only the operators that are named, by models and options. What code refers to beside these raises an error."""


def wanted(
    models: Sequence[ModelNeeds],
    extra: Sequence[ExtraOperator],
    sites: Sites,
    policy: Policy = Policy.STATIC,
    scopes: frozenset[Scope] = frozenset({Scope.INFERENCE}),
) -> Wanted:
    """The roots of a build. The scopes grow by what the models show.

    Raises UnknownOperator for an operator of `extra` that the tree does not have.
    """
    scopes = scopes | implied_scopes(models)
    overloads = _Overloads(sites)
    asked = join_operators(
        (*_from_models(models, overloads), *_from_user(extra, overloads), *_from_executor(models, overloads))
    )
    known = tuple(operator for operator in asked if operator.name in sites.operators)
    names = {operator.name for operator in known}
    symbols = sorted({symbol for name in names for symbol in sites.roots(name)})
    others = [site.symbol for site in sites.all if site.kind is SiteKind.SCHEMA and site.operator not in names]
    left_out = {*(others if policy is Policy.TRACED else ()), *_foreign_kernels(sites, scopes)}
    return Wanted(
        known,
        tuple(operator for operator in asked if operator.name not in sites.operators),
        tuple(symbols),
        tuple(sorted({sites.by_symbol[symbol].file for symbol in symbols})),
        tuple(sorted(scopes)),
        tuple(sorted(left_out)),
    )


def _foreign_kernels(sites: Sites, scopes: frozenset[Scope]) -> Iterator[str]:
    """The kernels that no tensor of the scopes leads to."""
    for operator in sites.operators:
        kernels = sites.kernels(operator)
        keys = selected_keys({kernel.key: kernel for kernel in kernels}, scopes)
        yield from (kernel.symbol for kernel in kernels if kernel.key not in keys)


LOADABLE: Mapping[Interpreter, frozenset[str]] = {
    Interpreter.LITE: frozenset({"lite", "lite-flatbuffer"}),
    Interpreter.FULL: frozenset({"torchscript", "lite", "lite-flatbuffer"}),
}
"""The formats of models that each interpreter loads."""


def require_loadable(models: Iterable[ModelNeeds], interpreter: Interpreter) -> None:
    """Raise InvalidModel for a model that the runtime could not load, whatever operators it had."""
    for model in models:
        if model.format in LOADABLE[interpreter]:
            continue
        if model.format == "torchscript":
            raise InvalidModel(
                "the lite interpreter does not load what torch.jit.save writes",
                where=model.path,
                remedy="give --interpreter full, or save it with model._save_for_lite_interpreter(FILE)",
            )
        raise InvalidModel(
            f"a runtime from source does not load models of the format {model.format}",
            where=model.path,
            expected="a .ptl file, or a .pt file of torch.jit.save with --interpreter full",
            remedy="opsieve build without --runtime source makes a slim PyTorch for it",
        )


def require_engine(models: Iterable[ModelNeeds], engine: QuantizedEngine) -> None:
    """Raise InvalidModel for a model with packed quantized weights if the runtime has nothing that unpacks them."""
    if engine is not QuantizedEngine.NONE:
        return
    for model in models:
        operators = [str(root.name) for root in model.roots if _NEEDS_ENGINE.match(str(root.name))]
        classes = [name for name in model.custom_classes if _PACKED.search(name)]
        if operators or classes:
            raise InvalidModel(
                f"the model is quantized ({(operators + classes)[0]}), and the runtime would have no engine for that",
                where=model.path,
                remedy="give --quantized-engine qnnpack",
            )


_NEEDS_ENGINE = re.compile(r"quantized::(?:conv|linear)")
_PACKED = re.compile(r"\.quantized\.(?:Conv|Linear)\w*PackedParams")
"""Packed weights of embeddings need no engine."""


class _Overloads:
    """The operators of a tree by their base name."""

    def __init__(self, sites: Sites) -> None:
        self.names = sites.operators
        self._by_base: dict[str, list[OperatorName]] = {}
        for name in sorted(self.names):
            self._by_base.setdefault(name.base_name, []).append(name)

    def expand(self, name: OperatorName, all_overloads: bool) -> tuple[OperatorName, ...]:
        """The operators that are meant; empty if there are none."""
        if all_overloads:
            return tuple(self._by_base.get(name.base_name, ()))
        return (name,) if name in self.names else ()

    def similar(self, name: OperatorName) -> list[str]:
        """What the user may have meant."""
        there = [str(other) for other in self._by_base.get(name.base_name, ())]
        return there[:6] or get_close_matches(str(name), sorted(map(str, self.names)), n=3)


def _from_models(models: Iterable[ModelNeeds], overloads: _Overloads) -> Iterator[SelectedOperator]:
    for model in models:
        for root in model.roots:
            reasons = tuple(sorted({Reason(ReasonKind.MODEL, model.path, use.method) for use in root.uses}))
            for name in overloads.expand(root.name, root.all_overloads) or (root.name,):
                yield SelectedOperator(name, reasons)


def _from_user(extra: Iterable[ExtraOperator], overloads: _Overloads) -> Iterator[SelectedOperator]:
    for item in extra:
        names = overloads.expand(item.name, item.all_overloads)
        if not names:
            raise UnknownOperator(
                f"this source tree has no operator {item.name}",
                where=item.source,
                expected=", ".join(overloads.similar(item.name)) or None,
                remedy="see aten/src/ATen/native/native_functions.yaml of the tree",
            )
        for name in names:
            yield SelectedOperator(name, (Reason(ReasonKind.OPTION, item.source),))


def _from_executor(models: Iterable[ModelNeeds], overloads: _Overloads) -> Iterator[SelectedOperator]:
    """What the graph executor of the full interpreter puts in by itself when it optimises."""
    if any(model.format == "torchscript" for model in models):
        for name, reason in executor_operators():
            if name in overloads.names:
                yield SelectedOperator(name, (Reason(ReasonKind.FRAMEWORK, reason),))
