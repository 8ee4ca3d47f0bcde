"""From what models need to what stays: the static closure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from opsieve.errors import UnknownOperator
from opsieve.graph.dependencies import Dependencies, find_dependencies
from opsieve.graph.framework import executor_operators, framework_operators
from opsieve.graph.op_graph import OpGraph
from opsieve.graph.scopes import Scope
from opsieve.models.needs import ModelNeeds, Reach
from opsieve.operators import OperatorName
from opsieve.select.selection import (
    ModelIdentity,
    Reason,
    ReasonKind,
    RuntimeIdentity,
    SelectedOperator,
    Selection,
    join_operators,
)

_QUANTIZED_NAMESPACES = ("quantized", "_quantized", "onednn", "sparse")
_SCRIPT_FORMATS = ("torchscript",)


@dataclass(frozen=True, slots=True)
class ExtraOperator:
    """An operator that the user asked for beside the models."""

    name: OperatorName
    all_overloads: bool
    source: str
    """`--op`, or the file and line that names it."""


def choose(
    graph: OpGraph,
    version: str,
    models: Sequence[ModelNeeds],
    extra: Sequence[ExtraOperator] = (),
    scopes: frozenset[Scope] = frozenset({Scope.INFERENCE}),
) -> tuple[Selection, Dependencies]:
    """Select the roots, and everything that they need in the scopes.

    The scopes grow by what the models show: quantized operators or packed weights bring the scope `quantized`.
    Raises UnknownOperator for an operator of `extra` that the runtime does not have.
    """
    scopes = scopes | implied_scopes(models)
    dependencies = find_dependencies(graph, scopes)
    roots = join_operators((*_from_models(graph, models), *_from_user(graph, extra), *_from_framework(graph, models)))
    known = [operator for operator in roots if str(operator.name) in graph]
    selection = Selection(
        runtime=RuntimeIdentity(version, graph.build_id),
        scopes=tuple(sorted(scopes)),
        models=tuple(sorted({ModelIdentity(m.path, m.format, m.fingerprint) for m in models})),
        operators=join_operators((*known, *_needed(dependencies, known))),
        missing=tuple(operator for operator in roots if str(operator.name) not in graph),
    )
    return selection, dependencies


def implied_scopes(models: Sequence[ModelNeeds]) -> frozenset[Scope]:
    """The scopes that models show by what they call: quantized operators or packed weights bring QUANTIZED."""
    quantized = any(
        any(root.name.namespace in _QUANTIZED_NAMESPACES or "quantize" in root.name.base for root in model.roots)
        or any(".quantized." in name or ".rnn." in name for name in model.custom_classes)
        for model in models
    )
    return frozenset({Scope.QUANTIZED}) if quantized else frozenset()


def _from_models(graph: OpGraph, models: Sequence[ModelNeeds]) -> Iterator[SelectedOperator]:
    for model in models:
        for root in model.roots:
            reasons = tuple(sorted({Reason(ReasonKind.MODEL, model.path, use.method) for use in root.uses}))
            names = _expand(graph, root.name, root.all_overloads)
            if not names and root.reach is Reach.INTERPRETER:
                # An overload whose code was not found: what the others of that name need serves it as well.
                names = _expand(graph, root.name, True)
                if not names:
                    continue
            for name in names or (root.name,):
                yield SelectedOperator(name, reasons)


def _from_user(graph: OpGraph, extra: Iterable[ExtraOperator]) -> Iterator[SelectedOperator]:
    for wanted in extra:
        names = _expand(graph, wanted.name, wanted.all_overloads)
        if not names:
            raise UnknownOperator(
                f"this PyTorch has no operator {wanted.name}",
                where=wanted.source,
                expected=", ".join(_similar(graph, wanted.name)) or None,
                remedy="opsieve graph --operators lists all names",
            )
        for name in names:
            yield SelectedOperator(name, (Reason(ReasonKind.OPTION, wanted.source),))


def _from_framework(graph: OpGraph, models: Sequence[ModelNeeds]) -> Iterator[SelectedOperator]:
    sources: list[Callable[[], Iterator[tuple[OperatorName, str]]]] = [framework_operators]
    if any(model.format in _SCRIPT_FORMATS for model in models):
        sources.append(executor_operators)
    for source in sources:
        for name, reason in source():
            if str(name) in graph:
                yield SelectedOperator(name, (Reason(ReasonKind.FRAMEWORK, reason),))


def _needed(dependencies: Dependencies, roots: Sequence[SelectedOperator]) -> Iterator[SelectedOperator]:
    for name in sorted(dependencies.always):
        yield SelectedOperator(OperatorName.parse(name), (Reason(ReasonKind.ANY_OPERATOR),))
    for name, parent in dependencies.parents(str(root.name) for root in roots).items():
        if parent is not None:
            yield SelectedOperator(OperatorName.parse(name), (Reason(ReasonKind.DEPENDENCY, parent),))


def _expand(graph: OpGraph, name: OperatorName, all_overloads: bool) -> tuple[OperatorName, ...]:
    if all_overloads:
        return tuple(OperatorName.parse(overload) for overload in graph.overloads(name.base_name))
    return (name,) if str(name) in graph else ()


def _similar(graph: OpGraph, name: OperatorName) -> list[str]:
    overloads = graph.overloads(name.base_name)
    if overloads:
        return list(overloads[:6])
    from difflib import get_close_matches

    return get_close_matches(str(name), graph.operators, n=3)
