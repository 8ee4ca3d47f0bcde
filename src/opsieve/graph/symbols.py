"""What PyTorch's mangled C++ names tell: initialisers, registration calls, kernel wrappers, typed operator handles.

The patterns follow the Itanium C++ ABI's mangling of names in torch/library.h, ATen/core/boxing and the files that
torchgen writes (`ATen/ops/*_ops.h`, `Register*.cpp`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_INITIALISER = re.compile(rb"^_Z(?:N\w*?)?L?(\d+)(TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?_init_\w+)$")
_STATIC_INITIALISER = re.compile(rb"(\d+)(TORCH_LIBRARY(?:_IMPL|_FRAGMENT)?_static_init_\w+?)E?$")
_BLOCK = re.compile(r"^TORCH_LIBRARY(_IMPL|_FRAGMENT)?(?:_static)?_init_(.*)$")
_IMPL_BLOCK = re.compile(r"^(.*)_([A-Za-z0-9]+)_\d+$")
_REGISTRATION_CALL = re.compile(
    rb"^_ZN[ROK]*(?:5torch7Library(5_impl|4impl|4_def|3def|9_fallback|8fallback)"
    rb"|3c1017RegisterOperators(2op))"
)
_KERNEL_WRAPPER = re.compile(
    rb"make_boxed_from_unboxed_functor|wrap_kernel_functor_unboxed|make_boxed_function|BoxedKernelWrapper"
)
_FALLTHROUGH = b"_ZN3c1018fallthrough_kernelE"
_DISPATCH_ENTRY = re.compile(rb"^_ZN2at4_ops(\d+)")
_TYPED_HANDLE = re.compile(rb"^_ZN2at4_opsL\d+create_(\w+)_typed_handleEv$")
_FIND_SCHEMA = re.compile(rb"^_ZN[ROK]*3c1010Dispatcher(?:17findSchemaOrThrow|10findSchema|6findOp)")
_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\.[A-Za-z_]\w*)?$")
_SCHEMA = re.compile(r"^([A-Za-z_][\w:]*(?:\.\w+)?)\s*\(.*\)\s*->", re.DOTALL)

_KEY_ALIASES = {"Autocast": "AutocastCUDA"}
"""DispatchKey spellings that stand for another key (c10/core/DispatchKey.h)."""

CATCH_ALL = "CatchAll"
"""The key of a kernel whose registration names none: it serves every backend that has no kernel of its own."""

INTERPRETER = "Interpreter"
"""The key, no key of the dispatcher, of operators that only the TorchScript interpreter has."""


@dataclass(frozen=True, slots=True)
class Block:
    """One `TORCH_LIBRARY*` block of the source: what its registrations are for."""

    namespace: str
    """`_` when the block is for all namespaces (backend fallbacks)."""

    key: str
    """The dispatch key, CATCH_ALL when the block is not a `TORCH_LIBRARY_IMPL`."""


def initialiser_block(name: bytes) -> Block | None:
    """The block of an initialiser function `TORCH_LIBRARY*_init_*(torch::Library&)`, None for other functions."""
    if b"TORCH_LIBRARY" not in name or not name.endswith(b"7LibraryE"):
        return None
    return _block(_INITIALISER.match(name))


def static_object_block(name: bytes) -> Block | None:
    """The block of a static `TorchLibraryInit` object, None for other data.

    The compiler inlines some initialisers into the file's `_GLOBAL__sub_I_` function; the object is what is left.
    """
    return _block(_STATIC_INITIALISER.search(name)) if b"TORCH_LIBRARY" in name else None


def _block(match: re.Match[bytes] | None) -> Block | None:
    if match is None:
        return None
    # The mangling gives the length of the identifier; what follows it is the parameter list.
    identifier = match.group(2)[: int(match.group(1))].decode()
    parts = _BLOCK.match(identifier)
    if parts is None:
        return None
    kind, rest = parts.groups()
    if kind == "_IMPL":
        # A namespace may contain underscores, a dispatch key never does.
        split = _IMPL_BLOCK.match(rest)
        return Block(split.group(1), _KEY_ALIASES.get(split.group(2), split.group(2))) if split else None
    return Block(re.sub(r"_\d+$", "", rest) if kind == "_FRAGMENT" else rest, CATCH_ALL)


def registration_call(name: bytes) -> str | None:
    """`impl`, `def` or `fallback` if a call of this function registers something, else None."""
    match = _REGISTRATION_CALL.match(name) if b"Register" in name or b"7Library" in name else None
    if match is None:
        return None
    if match.group(2) or b"def" in match.group(1):
        return "def"
    return "fallback" if b"fallback" in match.group(1) else "impl"


def is_kernel_wrapper(name: bytes) -> bool:
    """Whether this is the boxed or unboxed entry that the dispatcher calls for a registered kernel."""
    return _KERNEL_WRAPPER.search(name) is not None


def is_fallthrough(name: bytes) -> bool:
    """Whether this is what stands in place of a kernel to say that the next dispatch key is to be asked."""
    return name.startswith(_FALLTHROUGH)


def dispatch_entry(name: bytes) -> str | None:
    """The operator's struct name if this is `at::_ops::STRUCT::call` or `::redispatch`, else None."""
    match = _DISPATCH_ENTRY.match(name)
    if match is None or b".cold" in name:
        return None
    end = match.end() + int(match.group(1))
    is_entry = name.startswith((b"4call", b"10redispatch"), end)
    return name[match.end() : end].decode() if is_entry else None


def typed_handle(name: bytes) -> str | None:
    """The operator's struct name if this is the function that looks its handle up, else None."""
    match = _TYPED_HANDLE.match(name)
    return match.group(1).decode() if match else None


def finds_schema(name: bytes) -> bool:
    """Whether this function of the dispatcher looks an operator up by name."""
    return _FIND_SCHEMA.match(name) is not None


def operator_text(text: str) -> str | None:
    """The operator name in a string of a registration: an identifier, or a schema cut before its arguments."""
    if _IDENTIFIER.match(text):
        return text
    match = _SCHEMA.match(text)
    return match.group(1) if match else None
