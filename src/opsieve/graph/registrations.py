"""Which kernel is registered for which operator and dispatch key, read from the code of the static initialisers.

An initialiser passes, for each registration, the operator's name and the kernel's boxed and unboxed entry to
`torch::Library::impl` or `def`. Walking its references in order, the last name and the functions since the last such
call are what is registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from opsieve.graph.symbols import (
    CATCH_ALL,
    Block,
    initialiser_block,
    is_fallthrough,
    is_kernel_wrapper,
    operator_text,
    registration_call,
    static_object_block,
)
from opsieve.graph.walk import CodeWalker, Kind, Reference

STATIC_INITIALISERS = (b"_GLOBAL__sub_I_", b"_Z41__static_initialization_and_destruction_0")
"""The functions that construct a file's static objects: GCC makes one for each file, or splits it in two."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One registered kernel. `kernels` are functions; none means a fallthrough, or for a def only a schema."""

    operator: str
    """`namespace::name.overload`; for a backend fallback `namespace::*`, `_::*` being every operator."""

    key: str
    kernels: tuple[int, ...]
    is_definition: bool
    """True for `Library::def`: without a kernel it only declares the schema."""


def read_registrations(walker: CodeWalker) -> tuple[list[Registration], list[int]]:
    """All registrations of the library, and the functions in which they were found."""
    registrations: list[Registration] = []
    initialisers: list[int] = []
    for function, name in enumerate(walker.names):
        block = initialiser_block(name)
        if block is None and not name.startswith(STATIC_INITIALISERS):
            continue
        found = list(_in_initialiser(walker, function, block))
        if found or block is not None:
            initialisers.append(function)
        registrations.extend(found)
    return list(dict.fromkeys(registrations)), initialisers


def _in_initialiser(
    walker: CodeWalker, function: int, block: Block | None, followed: frozenset[int] = frozenset()
) -> Iterator[Registration]:
    operator: str | None = None
    kernels: list[Reference] = []
    makers: list[int] = []
    for reference in walker.references(function):
        if reference.kind is Kind.STRING:
            operator = operator_text(reference.text) or operator
        elif reference.kind is Kind.OBJECT:
            block = static_object_block(reference.name) or block
        elif reference.kind is Kind.FUNCTION and reference.function != function:
            kernels.append(reference)
        elif reference.kind is Kind.CALL and (call := registration_call(reference.name)) is not None:
            yield from _registration(walker, call, operator, _Kernels(tuple(kernels), tuple(makers)), reference, block)
            operator, kernels, makers = None, [], []
        elif reference.kind is Kind.CALL and initialiser_block(reference.name) not in (None, block):
            # GCC folds initialisers with equal bodies: the second one is then only a jump to the first.
            if reference.function not in followed:
                yield from _in_initialiser(walker, reference.function, block, followed | {reference.function})
        elif reference.kind is Kind.CALL:
            makers.append(reference.function)


@dataclass(frozen=True, slots=True)
class _Kernels:
    """What an initialiser refers to between two registrations."""

    taken: tuple[Reference, ...]
    """Functions whose address it takes."""

    makers: tuple[int, ...]
    """Functions that it calls: `CppFunction::makeFromBoxedFunction`, or another that returns a CppFunction."""

    def functions(self, *, wrappers_only: bool) -> tuple[int, ...]:
        return _functions(self.taken, wrappers_only=wrappers_only)

    def made(self, walker: CodeWalker) -> tuple[int, ...]:
        """The wrappers whose address the makers take, or what these call in turn."""
        inside = [reference for maker in self.makers for reference in walker.references(maker)]
        deeper = {reference.function for reference in inside if reference.kind is Kind.CALL} - set(self.makers)
        inside.extend(reference for callee in sorted(deeper) for reference in walker.references(callee))
        return _functions([reference for reference in inside if reference.kind is Kind.FUNCTION], wrappers_only=True)


def _registration(
    walker: CodeWalker,
    call: str,
    operator: str | None,
    candidates: _Kernels,
    callee: Reference,
    block: Block | None,
) -> Iterator[Registration]:
    namespace, key = (block.namespace, block.key) if block else ("", CATCH_ALL)
    if call == "fallback":
        kernels = candidates.functions(wrappers_only=True) or candidates.made(walker)
        yield Registration(f"{namespace}::*", key, tuple(sorted(set(kernels))), False)
        return
    inside = list(walker.references(callee.function)) if _is_template(callee.name) else []
    if operator is None:
        texts = (operator_text(reference.text) for reference in inside if reference.kind is Kind.STRING)
        operator = next((text for text in texts if text), None)
    if operator is None:
        return
    # A template instance wraps the kernel itself; its wrappers are then named by the instance, not the initialiser.
    wrapped = [reference for reference in inside if reference.kind is Kind.FUNCTION]
    # A runtime functor holds the address of its kernel, which only the initialiser names.
    runtime = any(b"WrapFunctionIntoRuntimeFunctor" in reference.name for reference in candidates.taken)
    only_wrappers = call == "def" and b"17RegisterOperators2op" not in callee.name and not runtime
    kernels = candidates.functions(wrappers_only=only_wrappers) + _functions(wrapped, wrappers_only=True)
    if call == "impl":
        kernels = kernels or candidates.made(walker)
    name = operator if "::" in operator else f"{namespace}::{operator}"
    yield Registration(name, key, tuple(sorted(set(kernels))), call == "def")


def _functions(candidates: Sequence[Reference], *, wrappers_only: bool) -> tuple[int, ...]:
    return tuple(
        reference.function
        for reference in candidates
        if (is_kernel_wrapper(reference.name) if wrappers_only else not is_fallthrough(reference.name))
    )


def _is_template(name: bytes) -> bool:
    """`Library::impl<...>`, `def<...>` and `RegisterOperators::op<...>` are templates; `_impl` and `_def` are not."""
    return b"7Library4impl" in name or b"7Library3def" in name or b"17RegisterOperators2op" in name
