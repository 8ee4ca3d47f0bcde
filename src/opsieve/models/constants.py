"""The constants of a TorchScript archive, of which only the types matter here."""

from __future__ import annotations

import re

from opsieve.models.archive import ModelArchive
from opsieve.models.pickles import Call, Global, read_pickle

CONSTANTS = "constants.pkl"
MAX_DEPTH, MAX_WIDTH = 3, 64
"""Of tuples of constants. Shared parts would otherwise let a small pickle describe an endless type."""

_SIMPLE = {bool: "bool", int: "int", float: "float", str: "str", type(None): "NoneType"}
_LISTS = {  # torch/jit/_pickle.py
    "build_intlist": "List[int]",
    "build_doublelist": "List[float]",
    "build_boollist": "List[bool]",
    "build_tensorlist": "List[Tensor]",
}
_ANNOTATION = re.compile(r"[\w.\[\], ]{1,2000}", re.ASCII)


def constant_types(archive: ModelArchive) -> dict[int, str]:
    """The TorchScript type of each constant by its number. Those whose type is not clear are left out."""
    if CONSTANTS not in archive:
        return {}
    content = read_pickle(archive.read(CONSTANTS), f"{archive.path}: {CONSTANTS}")
    if not isinstance(content, tuple | list):
        raise archive.fault("the constants are no tuple", CONSTANTS)
    types = ((number, _type(value, MAX_DEPTH)) for number, value in enumerate(content))
    return {number: kind for number, kind in types if kind is not None}


def _type(value: object, depth: int) -> str | None:
    if type(value) in _SIMPLE:
        return _SIMPLE[type(value)]
    if isinstance(value, tuple) and depth and 0 < len(value) <= MAX_WIDTH:
        parts = [_type(part, depth - 1) for part in value]
        return None if None in parts else f"Tuple[{', '.join(map(str, parts))}]"
    if isinstance(value, Call) and isinstance(value.function, Global):
        return _type_of_call(value.function, value.arguments)
    return None


def _type_of_call(function: Global, arguments: object) -> str | None:
    if function.module == "torch._utils":  # _rebuild_tensor_v2, _rebuild_qtensor, ...
        return "Tensor"
    if function.module == "torch.jit._pickle":
        given = arguments[0] if isinstance(arguments, tuple) and arguments else ()
        tag = given[1] if function.name == "restore_type_tag" and isinstance(given, tuple) and len(given) > 1 else ""
        annotation = tag if isinstance(tag, str) and tag else _LISTS.get(function.name, "")
    else:
        annotation = str(function) if function.module.startswith("__torch__") else ""
    return annotation if _ANNOTATION.fullmatch(annotation) else None
