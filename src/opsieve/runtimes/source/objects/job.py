"""One source file to compile, and with what."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from opsieve.runtimes.source.objects.errors import UnusableFlag

_LANGUAGES = {".c": "c", ".S": "assembler-with-cpp", ".s": "assembler"}
_ONLY_CPLUSPLUS = ("-fvisibility-inlines-hidden", "-fno-rtti", "-fno-threadsafe-statics")
_REFUSED = ("-I", "-o", "-c", "-S", "-E", "-M", "-save-temps", "--save-temps", "-gsplit-dwarf", "--coverage", "-x")
_ALLOWED = ("-Ofast",)


@dataclass(frozen=True)
class CompileJob:
    """A translation unit. The language follows from the suffix: `.c` is C, `.S` and `.s` assembler, the rest C++.

    `name` is stable between machines and runs ("src/native/Foo.cpp", "generated/Bar.cpp"): durations are remembered by
    it, and `__FILE__` of the source is it. `flags` are all flags but the include folders; `include` is searched in
    its order.
    """

    name: str
    source: Path
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        """Refuse flags that would break what the store relies on. Raises UnusableFlag."""
        for flag in self.flags:
            if flag.startswith(_REFUSED) and not flag.startswith(_ALLOWED):
                raise UnusableFlag(
                    f"the flag {flag} cannot be used here",
                    expected="flags for code generation, warnings, and definitions",
                    remedy="leave the flag out; include folders are given apart",
                )

    @property
    def language(self) -> str:
        """The name of the language as `-x` takes it."""
        return _LANGUAGES.get(self.source.suffix, "c++")

    @cached_property
    def language_flags(self) -> tuple[str, ...]:
        """The flags without those that the compiler takes for C++ only, if this is not C++."""
        if self.language == "c++":
            return self.flags
        return tuple(flag for flag in self.flags if flag not in _ONLY_CPLUSPLUS and not _is_cplusplus_standard(flag))

    @cached_property
    def source_path(self) -> str:
        """The source's absolute path."""
        return os.path.abspath(self.source)  # noqa: PTH100 - resolve() would follow links, the compiler does not

    @cached_property
    def include_folders(self) -> tuple[str, ...]:
        """Absolute paths of the include folders."""
        return tuple(os.path.abspath(folder) for folder in self.include)  # noqa: PTH100


def _is_cplusplus_standard(flag: str) -> bool:
    return flag.startswith("-std=") and "++" in flag
