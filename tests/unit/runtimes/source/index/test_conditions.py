"""`#if` with known, foreign and unknown macros."""

from __future__ import annotations

import pytest

from opsieve.runtimes.source.index.conditions import Conditions
from opsieve.runtimes.source.index.macros import Macro

SHARED = {
    "ONE": (Macro("ONE", None, "1"),),
    "MKL_ENABLED": (Macro("MKL_ENABLED", (), "0"),),
    "SAME": (Macro("SAME", None, "(ONE)"),),
    "TWO_WAYS": (Macro("TWO_WAYS", None, "0"), Macro("TWO_WAYS", None, "1")),
    "LOOP": (Macro("LOOP", None, "LOOP"),),
}
DEFINES: dict[str, str | tuple[str, ...]] = {"MOBILE": "1", "LEVEL": "3", "EMPTY": "", "WAYS": ("1", "0")}


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("if", "1", True),
        ("if", "0", False),
        ("if", "MOBILE", True),
        ("if", "UNHEARD_OF", False),
        ("if", "__GNUC__ > 4", None),
        ("if", "ONE && !MKL_ENABLED()", True),
        ("if", "SAME", True),
        ("if", "TWO_WAYS", None),
        ("if", "WAYS", None),
        ("ifdef", "WAYS", True),
        ("if", "LOOP", None),
        ("if", "defined(MOBILE) && defined LEVEL", True),
        ("if", "defined(UNHEARD_OF) || LEVEL >= 3", True),
        ("if", "LEVEL < 0x3", False),
        ("if", "__x86_64__ && 0", False),
        ("if", "__x86_64__ || 1", True),
        ("if", "__x86_64__ && 1", None),
        ("if", "!(MOBILE && UNHEARD_OF)", True),
        ("elif", "MOBILE == 1L", True),
        ("ifdef", "EMPTY", True),
        ("ifdef", "ONE", None),
        ("ifndef", "UNHEARD_OF", True),
        ("ifndef", "MOBILE", False),
        ("ifdef", "", None),
        ("if", "", None),
        ("if", "((", None),
        ("if", "has_include(<x>) ? 1 : 0", None),
        ("if", "(" * 5_000 + "1", None),
        ("if", "!" * 5_000 + "1", None),
    ],
)
def test_conditions(kind: str, text: str, expected: bool | None) -> None:
    assert Conditions(DEFINES, SHARED).holds(kind, text) is expected


@pytest.mark.parametrize(("kind", "text"), [("if", "MOBILE"), ("ifdef", "UNHEARD_OF"), ("ifndef", "UNHEARD_OF")])
def test_without_a_command_line_nothing_is_known(kind: str, text: str) -> None:
    assert Conditions(None, {}).holds(kind, text) is None
