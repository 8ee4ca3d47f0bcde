"""Which operators the syntax of TorchScript stands for. Facts from torch/csrc/jit/frontend/ir_emitter.cpp,
environment.cpp and serialization/python_print.cpp.

PyTorch prints most calls as `torch.name(...)` and `ops.namespace.name(...)`; only the forms below hide one.
The infix forms never come from `torch.jit.save`, which prints `torch.add(a, b)`, but loading accepts them.
"""

from __future__ import annotations

BINARY: dict[str, tuple[str, ...]] = {
    "+": ("aten::add",),
    "-": ("aten::sub",),
    "*": ("aten::mul",),
    "/": ("aten::div",),
    "//": ("aten::floordiv", "aten::floor_divide"),
    "%": ("aten::remainder", "aten::percentFormat"),
    "**": ("aten::pow",),
    "@": ("aten::matmul",),
    "&": ("aten::__and__",),
    "|": ("aten::__or__",),
    "^": ("aten::__xor__",),
    "<<": ("aten::__lshift__",),
    ">>": ("aten::__rshift__",),
    "==": ("aten::eq",),
    "!=": ("aten::ne",),
    "<": ("aten::lt",),
    "<=": ("aten::le",),
    ">": ("aten::gt",),
    ">=": ("aten::ge",),
    "in": ("aten::__contains__",),
    "is": ("aten::__is__", "aten::__isnot__"),
}
UNARY: dict[str, tuple[str, ...]] = {
    "-": ("aten::neg",),
    "~": ("aten::bitwise_not",),
    "not": ("aten::__not__",),
    "assert": ("prim::RaiseException",),
    "raise": ("prim::RaiseException",),
}
IN_PLACE: dict[str, tuple[str, ...]] = {
    "+=": ("aten::add_", "aten::add"),
    "-=": ("aten::sub_", "aten::sub"),
    "*=": ("aten::mul_", "aten::mul"),
    "/=": ("aten::div_", "aten::div"),
}
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "int": ("aten::Int",),
    "float": ("aten::Float",),
    "bool": ("aten::Bool",),
    "complex": ("aten::Complex",),
    "str": ("aten::str",),
    "print": ("prim::Print",),
    "sorted": ("aten::sorted",),
    "uninitialized": ("prim::Uninitialized",),
    "unchecked_cast": ("prim::unchecked_cast",),
    # Python's built-in functions, which environment.cpp maps; never printed in this form.
    "len": ("aten::len",),
    "abs": ("prim::abs",),
    "min": ("prim::min",),
    "max": ("prim::max",),
    "round": ("aten::round",),
    "divmod": ("aten::divmod",),
    "list": ("aten::list",),
    "dict": ("aten::dict",),
    "hash": ("aten::hash",),
    "hex": ("aten::hex",),
    "oct": ("aten::oct",),
    "bin": ("aten::bin",),
    "ord": ("aten::ord",),
    "chr": ("aten::chr",),
}
CONVERSIONS: dict[str, tuple[str, ...]] = {
    "int": ("aten::IntImplicit",),
    "float": ("aten::FloatImplicit",),
    "number": ("aten::ScalarImplicit",),
}
"""`annotate(T, x)` with such a T is how the implicit conversion of a tensor is printed."""

INDEX = ("aten::__getitem__",)
CONSTANT_INDEX = ("prim::TupleIndex",)
INDEX_ASSIGNED = ("aten::_set_item",)
TENSOR_INDEX = ("aten::slice", "aten::select", "aten::unsqueeze", "aten::index")
"""For an index with a slice or several parts. What PyTorch prints so is a part of a tuple; a tensor may be meant."""

UNPACKED = ("prim::TupleUnpack",)
ENUM_ATTRIBUTES: dict[str, str] = {"value": "prim::EnumValue", "name": "prim::EnumName"}
METHODS: dict[str, str] = {"tolist": "prim::tolist"}
"""Methods of built-in types whose operator has another name."""

TYPES = ("List", "Tuple", "Dict", "Optional", "Union", "Future", "RRef", "Final", "Await")
"""A name of these followed by `[` is a type, not an index."""

INTERFACES = ("Interface", "ModuleInterface")
DATA_CLASSES = ("NamedTuple", "Enum")
"""What a class inherits from when its methods, or the class itself, are no code."""
