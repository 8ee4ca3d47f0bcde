"""Where a model's inputs come from, as the user says it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

from opsieve.errors import InvalidFile

FLOATING = ("float32", "float64", "float16", "bfloat16", "complex64", "complex128")
WHOLE = ("int64", "int32", "int16", "int8", "uint8", "bool")
DTYPES = (*FLOATING, *WHOLE)

MAX_ELEMENTS = 1 << 31
"""A larger input is a slip of the pen: it would not fit into memory a few times over."""

_FORM = "1,3,224,224  or  1,512:int64:0..100  (shape, dtype, range of whole numbers)  or  =16000  (a plain value)"
_SHAPE = re.compile(
    r"(?P<shape>scalar|\d{1,12}(?:,\d{1,12}){0,15})(?::(?P<dtype>\w+)(?::(?P<low>-?\d{1,18})\.\.(?P<high>-?\d{1,18}))?)?"
)


@dataclass(frozen=True, slots=True)
class RandomTensor:
    """A tensor that is filled from a fixed seed."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: int = 0
    high: int = 10
    """Whole numbers lie in [low, high); floating ones are normally distributed."""


@dataclass(frozen=True, slots=True)
class PlainValue:
    """An argument that is no tensor, such as a sample rate."""

    value: int | float | bool | str | None


Argument = RandomTensor | PlainValue


@dataclass(frozen=True, slots=True)
class InputsFromFile:
    """A file of torch.save: a tensor, a tuple of arguments, a dict of named ones, or a list of such inputs."""

    path: Path


@dataclass(frozen=True, slots=True)
class InputsFromShapes:
    """Positional arguments described on the command line."""

    arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class InputsFromModel:
    """The example inputs that `torch.export.save` stores in a `.pt2` file."""


Inputs = InputsFromFile | InputsFromShapes | InputsFromModel


def parse_argument(text: str, dtype: str = "float32") -> Argument:
    """Read one `--shape` option; `dtype` is used where the text names none.

    Raises InvalidFile for anything else than a shape of sensible size or a plain value.
    """
    if text.startswith("="):
        return PlainValue(_plain_value(text[1:]))
    match = _SHAPE.fullmatch(text.replace(" ", ""))
    if match is None:
        raise InvalidFile(f"{text!r} describes no input", expected=_FORM)
    shape = () if match["shape"] == "scalar" else tuple(map(int, match["shape"].split(",")))
    dtype = match["dtype"] or dtype
    low, high = int(match["low"] or 0), int(match["high"] or 10)
    _check(text, shape, dtype, low, high)
    return RandomTensor(shape, dtype, low, high)


def _plain_value(text: str) -> int | float | bool | str | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    if value is not None and not isinstance(value, int | float | bool | str):
        raise InvalidFile(f"{text[:80]!r} is no plain value", expected="a number, True, False, None or a text")
    return value


def _check(text: str, shape: tuple[int, ...], dtype: str, low: int, high: int) -> None:
    if dtype not in DTYPES:
        raise InvalidFile(f"{text!r}: there is no dtype {dtype!r}", expected=", ".join(DTYPES))
    elements = 1
    for size in shape:
        elements *= size
    if elements > MAX_ELEMENTS:
        raise InvalidFile(f"{text!r} has {elements} elements", expected=f"at most {MAX_ELEMENTS}")
    if low >= high:
        raise InvalidFile(f"{text!r}: the range {low}..{high} is empty", expected=_FORM)
