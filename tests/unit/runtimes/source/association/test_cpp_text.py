"""Comments, literals and brackets of C++."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.association.cpp_text import CppText, any_literal, leading_literal


def test_comments_and_literals_are_blank_at_equal_length() -> None:
    source = CppText('f("a(b", \'(\'); // )\n/* { */ g(1\'000, R"x()")x");')
    assert len(source.plain) == len(source.text)
    assert source.plain.count("(") == source.plain.count(")") == 2
    assert "{" not in source.plain


@given(st.text(alphabet="ab(){}[];,\"'/*\\\n ", max_size=60))
def test_blanking_keeps_length_and_lines_of_any_text(text: str) -> None:
    plain = CppText(text).plain
    assert len(plain) == len(text)
    assert [at for at, c in enumerate(plain) if c == "\n"] == [at for at, c in enumerate(text) if c == "\n"]


def test_closing_bracket_is_found_behind_misleading_literals() -> None:
    source = CppText('call(a, ")", [](int x) { return x; }) + 1')
    assert source.text[source.closing(4) :] == ") + 1"


@pytest.mark.parametrize("text", ["(", "({)}", "(]", "((a)"])
def test_brackets_that_do_not_match_are_an_error_with_the_line(text: str) -> None:
    with pytest.raises(InvalidFile, match=r"x\.cpp:1"):
        CppText(text, "x.cpp").closing(0)


def test_split_ignores_separators_within_brackets() -> None:
    text = 'f(a, b), {c, d}, "e, f"'
    source = CppText(text)
    assert [text[a:b].strip() for a, b in source.split(0, len(text), ",")] == ["f(a, b)", "{c, d}", '"e, f"']


def test_adjacent_literals_are_joined() -> None:
    assert leading_literal('"aten::add" \n ".int(int a)" , x') == "aten::add.int(int a)"
    assert leading_literal('x "a"') is None
    assert any_literal('SelectiveStr<check("a" "b")>("a" "b")') == "ab"
    assert any_literal("name") is None
