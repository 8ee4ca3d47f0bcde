"""Element types of tensors, by the names that users and PyTorch's C++ give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from opsieve.errors import InvalidFile

SCALAR_TYPES: Mapping[str, str] = {
    "uint8": "Byte",
    "int8": "Char",
    "int16": "Short",
    "int32": "Int",
    "int64": "Long",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
    "complex32": "ComplexHalf",
    "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
    "bool": "Bool",
    "qint8": "QInt8",
    "quint8": "QUInt8",
    "qint32": "QInt32",
    "bfloat16": "BFloat16",
}
"""Name in Python -> name in c10::ScalarType, for the types that kernels dispatch on."""

_ALIASES = {
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "float": "float32",
    "double": "float64",
}


def parse_dtype(text: str) -> str:
    """The c10::ScalarType name of `float32`, `float`, `Float` or `torch.float32`. Raises InvalidFile for no dtype."""
    word = text.strip().removeprefix("torch.").removeprefix("at::k")
    if word in SCALAR_TYPES.values():
        return word
    name = _ALIASES.get(word.lower(), word.lower())
    if name not in SCALAR_TYPES:
        raise InvalidFile(
            f"{text[:40]!r} is no dtype that kernels dispatch on", expected=", ".join((*_ALIASES, *SCALAR_TYPES))
        )
    return SCALAR_TYPES[name]


@dataclass(frozen=True, slots=True)
class KernelDtypes:
    """Which dtypes the kernels keep: for each kernel tag, or the same for all.

    A kernel tag is the name that an `AT_DISPATCH_*` macro is given, such as `add_cpu`.
    """

    everywhere: frozenset[str] = frozenset()
    """Names of c10::ScalarType that every kernel keeps."""

    by_tag: tuple[tuple[str, frozenset[str]], ...] = ()
    """For each tag what it keeps beside those; sorted by tag."""

    @classmethod
    def of(cls, everywhere: Iterable[str] = (), by_tag: Mapping[str, Iterable[str]] | None = None) -> KernelDtypes:
        """From names in any spelling. Raises InvalidFile for a name that is no dtype."""
        tags = {tag: frozenset(map(parse_dtype, names)) for tag, names in (by_tag or {}).items()}
        return cls(frozenset(map(parse_dtype, everywhere)), tuple(sorted(tags.items())))

    def merge(self, other: KernelDtypes) -> KernelDtypes:
        """What serves both: associative, commutative and idempotent."""
        mine, others = dict(self.by_tag), dict(other.by_tag)
        tags = {tag: mine.get(tag, frozenset()) | others.get(tag, frozenset()) for tag in mine.keys() | others.keys()}
        return KernelDtypes(self.everywhere | other.everywhere, tuple(sorted(tags.items())))
