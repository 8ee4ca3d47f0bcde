"""The key function of a class: its first virtual function that is neither pure nor inline.

The Itanium C++ ABI (5.2.3) puts a class's vtable and typeinfo into the object that defines this function.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsieve.runtimes.source.index import heads
from opsieve.runtimes.source.index.braces import body_end
from opsieve.runtimes.source.index.declarators import has_initialiser

_TOKEN = re.compile(r"[{};]")
_VIRTUAL = re.compile(r"\b(?:virtual|override|final)\b")
_NOT_KEY = re.compile(r"=\s*(?:0|default|delete)\s*$|\b(?:inline|constexpr)\b")
_MAX_NESTING = 8


def key_functions(code: str, start: int, end: int, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """The names of the class with the body `code[start:end]` and of those inside, each with its key function.

    A class with virtual functions but no key function comes with an empty one, a class without the former not at all.
    """
    key, polymorphic, position, begin = "", False, start, start
    while match := _TOKEN.search(code, position, end):
        head, position = heads.plain(code[begin : match.start()][-heads.MAX_HEAD :]), match.end()
        if match.group() == "{":
            position = body_end(code, match.end(), end)
            if head.count("(") > head.count(")") or _initialises(head):
                continue
            inner = heads.class_name(head)
            if inner and depth < _MAX_NESTING:
                yield from key_functions(code, match.end(), position - 1, f"{name}::{inner}", depth + 1)
        is_virtual = "(" in head and _VIRTUAL.search(head) is not None
        polymorphic |= is_virtual
        if is_virtual and not key and match.group() == ";" and not _NOT_KEY.search(head):
            declared = heads.function(head)
            key = declared.name if declared else ""
        begin = position
    if polymorphic:
        yield name, key


def _initialises(head: str) -> bool:
    """Whether a brace behind `head` begins an initialiser, `int a = {1};` or `: a_{1}`, and not a body."""
    return heads.is_member_initialiser(head) or ("(" not in head and has_initialiser(head))
