"""The headers that PyTorch's own build system would write, from the tree's own templates.

A template is CMake's: `@NAME@` and `${NAME}` are replaced, `#cmakedefine NAME` becomes `#define NAME` or a comment.
What a template asks for and we do not set is 0, which in all of PyTorch's templates means "without".
Which templates exist differs between versions, so they are looked up rather than named per version.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from opsieve.errors import InvalidFile

_SUBSTITUTED = re.compile(r"@(\w+)@|\$\{(\w+)\}")
_CMAKEDEFINE = re.compile(r"^[ \t]*#[ \t]*cmakedefine(01)?[ \t]+(\w+)(.*)$", re.MULTILINE)

TEMPLATES: Mapping[str, str] = {
    "aten/src/ATen/Config.h.in": "ATen/Config.h",
    "c10/macros/cmake_macros.h.in": "c10/macros/cmake_macros.h",
    "caffe2/core/macros.h.in": "caffe2/core/macros.h",
    "torch/csrc/api/include/torch/version.h.in": "torch/csrc/api/include/torch/version.h",
    "torch/headeronly/macros/cmake_macros.h.in": "torch/headeronly/macros/cmake_macros.h",
    "torch/headeronly/version.h.in": "torch/headeronly/version.h",
}
"""Template in the tree -> the header it makes, relative to the folder of generated headers. The last two are in newer
trees only."""

ALSO_AT: Mapping[str, tuple[str, ...]] = {"torch/csrc/api/include/torch/version.h": ("torch/version.h",)}
"""A header that is included by two names, because two of PyTorch's include folders lead to it."""


def expand(template: str, values: Mapping[str, str]) -> str:
    """What CMake's `configure_file` makes of a template. A name that `values` lacks is "0", or not defined."""

    def define(match: re.Match[str]) -> str:
        as_number, name, rest = match.groups()
        is_set = values.get(name, "0") not in ("", "0", "OFF")
        if as_number:
            return f"#define {name} {int(is_set)}"
        return f"#define {name}{rest}" if is_set else f"/* #undef {name} */"

    def substitute(match: re.Match[str]) -> str:
        return values.get(match[1] or match[2], "0")

    return _SUBSTITUTED.sub(substitute, _CMAKEDEFINE.sub(define, template))


def configured_headers(tree: Path, version: str, values: Mapping[str, str]) -> dict[str, str]:
    """Relative path -> text of every header to write for a tree of this version.

    `values` are the options that the templates know, such as `AT_PARALLEL_OPENMP`. Raises InvalidFile when the tree
    lacks the one template that every version has.
    """
    known = {**_version_values(version), **values}
    headers: dict[str, str] = {}
    for source, target in TEMPLATES.items():
        path = tree / source
        if path.is_file():
            text = expand(path.read_text(encoding="utf-8"), known)
            headers.update(dict.fromkeys((target, *ALSO_AT.get(target, ())), text))
    if "ATen/Config.h" not in headers:
        raise InvalidFile(
            "this source tree has no aten/src/ATen/Config.h.in", where=tree, expected="a PyTorch source tree"
        )
    return headers


def _version_values(version: str) -> dict[str, str]:
    major, minor, patch = version.split(".")[:3]
    # 1.13 still asks that CAFFE2_VERSION_MINOR is below 100.
    return {
        "TORCH_VERSION": version,
        **{f"{who}_VERSION_MAJOR": major for who in ("TORCH", "CAFFE2")},
        **{f"{who}_VERSION_MINOR": minor for who in ("TORCH", "CAFFE2")},
        **{f"{who}_VERSION_PATCH": patch for who in ("TORCH", "CAFFE2")},
    }
