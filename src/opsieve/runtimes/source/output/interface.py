"""What a program that uses the library has to be compiled and linked with."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from opsieve.runtimes.source.output.headers import DEFINITION
from opsieve.runtimes.source.output.parts import RuntimeParts

_STANDARD = re.compile(r"-std=(?:gnu|c)\+\+(\w+)")
_APPLICATION_DECIDES = ("NDEBUG",)
_SECTIONS = ("-ffunction-sections", "-fdata-sections")  # what the application does not use keeps no operator then
_FOR_OUR_EYES = ("-Wl,--no-demangle", "-Wl,--error-limit=0")


@dataclass(frozen=True)
class Interface:
    """Flags for the compiler driver; folders and the library itself excepted."""

    standard: str
    """Of C++, such as "17"."""

    definitions: tuple[str, ...]
    """Macros, `NAME` or `NAME=value`."""

    compile_options: tuple[str, ...]
    link_options: tuple[str, ...]
    libraries: tuple[str, ...]


def interface_of(parts: RuntimeParts, macros: Collection[str]) -> Interface:
    """The flags of the runtime's own compile and link that concern whoever includes its headers.

    `macros` are those that the headers mention: they change what is declared. The others concern PyTorch's sources.
    """
    flags = parts.compile.flags
    threads = tuple(dict.fromkeys(flag for flag in (*flags, *parts.libraries) if flag in ("-fopenmp", "-pthread")))
    sections = tuple(flag for flag in _SECTIONS if flag in flags)
    standard = next((match[1] for flag in reversed(flags) if (match := _STANDARD.fullmatch(flag))), "17")
    return Interface(
        standard,
        _definitions(flags, macros),
        (*sections, *threads),
        (*(flag for flag in parts.link_flags if flag not in _FOR_OUR_EYES), *threads),
        tuple(flag for flag in parts.libraries if flag not in threads),
    )


def _definitions(flags: Iterable[str], macros: Collection[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for flag in flags:
        match = DEFINITION.fullmatch(flag)
        if match and match[1] in macros and match[1] not in _APPLICATION_DECIDES:
            found[match[1]] = match[1] + (match[2] or "")
    return tuple(found.values())
