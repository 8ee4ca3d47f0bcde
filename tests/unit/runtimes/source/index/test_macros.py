"""Expanding a tree's own macros."""

from __future__ import annotations

import pytest

from opsieve.runtimes.source.index.macros import MAX_EXPANSION, Macro, MacroTable, read_macro


def table(*defines: str) -> MacroTable:
    shared: dict[str, tuple[Macro, ...]] = {}
    for text in defines:
        macro = read_macro(text)
        assert macro is not None
        shared[macro.name] = (*shared.get(macro.name, ()), macro)
    return MacroTable(shared)


def expand(text: str, *defines: str) -> list[str]:
    return [" ".join(one.split()) for one in table(*defines).expansions(text)]


@pytest.mark.parametrize(
    ("text", "defines", "expected"),
    [
        ("IMPL(add)(int)", ["IMPL(name) void structured_##name::impl"], "void structured_add::impl (int)"),
        ("A(1, f(2, 3))", ["A(x, y) x + y + x"], "1 + f(2, 3) + 1"),
        ("A(x)", ["A(v) #v v##_t"], '"" x_t'),
        ("A(x, y, z)", ["A(first, ...) first(__VA_ARGS__)"], "x(y, z)"),
        ("A(x, y, z)", ["A(first, rest...) first(rest)"], "x(y, z)"),
        ("EACH(USE)", ["EACH(_) _(int) _(float)", "USE(T) T f_##T();"], "int f_int(); float f_float();"),
        ("A", ["A B", "B c"], "c"),
        ("A + A(1)", ["A(x) x"], "A + 1"),
        ("A ()", ["A() x"], "x"),
        ("A(1", ["A(x) x"], "A(1"),
        ("f { A(1) }", ["A(x) x"], "f { A(1) }"),
    ],
)
def test_expansion(text: str, defines: list[str], expected: str) -> None:
    assert expand(text, *defines) == [expected]


def test_each_definition_gives_an_expansion() -> None:
    assert expand("A(1)", "A(x) one x", "A(x) two x", "B(x) x") == ["one 1", "two 1"]


def test_a_file_s_own_macro_hides_the_headers_and_goes_again() -> None:
    macros = table("A(x) shared")
    macros.define(Macro("A", ("x",), "own"))
    assert [one.strip() for one in macros.expansions("A(1)")] == ["own"]
    macros.undefine("A")
    assert [one.strip() for one in macros.expansions("A(1)")] == ["shared"]


def test_macros_that_use_each_other_come_to_an_end() -> None:
    (expanded,) = table("A(x) B(x) B(x) B(x)", "B(x) A(x) A(x)").expansions("A(1)")
    assert len(expanded) <= MAX_EXPANSION


@pytest.mark.parametrize("text", ["", "(x)", "A(x) A(x); A(x)", "A A"])
def test_what_names_nothing_or_itself_is_no_macro(text: str) -> None:
    assert read_macro(text) is None
