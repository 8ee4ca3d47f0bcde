"""What the scanner makes of single declarations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsieve.runtimes.source.index.conditions import Conditions
from opsieve.runtimes.source.index.macros import MacroTable
from opsieve.runtimes.source.index.scan import Scanner
from opsieve.runtimes.source.index.text import read_unit


def scan(text: str, *, c: bool = False, header: bool = False) -> Scanner:
    scanner = Scanner(MacroTable({}), Conditions({}, {}), c=c, header=header)
    scanner.scan(read_unit(text))
    return scanner


def found(text: str, **options: bool) -> list[tuple[str, str]]:
    return [(one.key, one.kind) for one in scan(text, **options).found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int f(int a) { return a; }", [("f", "function")]),
        ("namespace a::b { namespace c { void f() {} } void g() {} } void h() {}", ["a::b::c::f", "a::b::g", "h"]),
        ("namespace a { inline namespace v1 { void f() {} } }", ["a::v1::f"]),
        ("namespace { void f() {} } void g() {}", ["g"]),
        ("static void f() {} void g() {}", ["g"]),
        ("namespace n { void n::A::f() {} void A::g() {} void ::h() {} }", ["n::A::f", "n::A::g", "h"]),
        ("std::function<void(int)> A<int>::f(std::map<int, B> x) const noexcept {}", ["A::f"]),
        ("A::A(int x) : a_(x), b_{x}, c_{{1, 2}} { if (x) { } } void f() {}", ["A::A", "f"]),
        ("A::~A() = default; A& A::operator=(A&&) = default; A::A(int) = delete;", ["A::~A", "A::operator="]),
        ("bool A::operator()(int x) const { } A::operator bool() { } S& operator<<(S& s, A) { }", None),
        ("auto f(int x) -> std::vector<int> { } decltype(auto) g() { }", ["f", "g"]),
        ('__attribute__((visibility("default"))) int f() { } [[nodiscard]] int g() { }', ["f", "g"]),
        ("int table[] = {1, 2}; int f() {}", [("table", "variable"), ("f", "function")]),
        ("A b{1}; std::map<int, A> A::c = {{1, {}}}; int d;", ["b", "A::c", "d"]),
        ("A f(B({1, 2}), [](int x) { return x; }); int g() {}", [("f", "possible variable"), ("g", "function")]),
        ("const int local = 1; extern const int shared = 2;", [("local", "possible variable"), ("shared", "variable")]),
        (
            "extern int a; int f(int); class B; struct C { int x; }; enum class D { x }; using E = int;",
            [("f", "possible variable")],
        ),
        ("template <class T> T f(T x) { } template int f<int>(int); template class A<int>;", None),
        ("extern template class A<int>; template <> int A<int>::f() { }", [("A::f", "function")]),
        ("struct A f() { } struct B b = {1};", [("f", "function"), ("b", "variable")]),
        ("enum status f(const enum kind k, int a[1]) { } enum E n::g(void) { }", ["f", "n::g"]),
        ("enum { a }; enum API E { b }; enum class F : int { c }; enum struct G { d }; typedef enum { e } H;", []),
        ('extern "C" { int f() { } } extern "C" int g() { } namespace n { extern "C" int h() { } }', ["f", "g", "h"]),
        ("WHATEVER(1, 2)\nint f() { }", ["f"]),
        (
            "const char* s = \"}\"; char c = '{'; /* { */ int f() { return '\"'; } // {\nint g() { }",
            ["s", "c", "f", "g"],
        ),
        ('const char* s = R"x({ " )x"; int f() { }', ["s", "f"]),
        ("#define BODY { {\nint f() { }", ["f"]),
        (
            "#define TWO(n) int n##1() { } int n##2() { }\nTWO(f) TWO(g)\n#undef TWO\nint TWO() { }",
            ["f1", "f2", "g1", "g2", "TWO"],
        ),
        ("#define OPEN namespace n {\n#define CLOSE }\nOPEN int f() { } CLOSE int g() { }", ["n::f", "g"]),
        ("int f() {\n#ifdef A\n if (a) {\n#else\n if (b) {\n#endif\n } }\nint g() { }", ["f", "g"]),
        ("int f() {\n#ifdef A\n x({{1});\n } else {\n#endif\n }\nint g() { }", ["f", "g"]),
        ("int f() {\n#if 1\n if (a) {\n#else\n if ({) {\n#endif\n } }\nint g() { }", ["f", "g"]),
        ("int f() {\n#ifdef _A\n if (a) {\n#endif\n b();\n#ifdef _A\n }\n#endif\n }\nint g() { }", ["f", "g"]),
        ("#ifdef A\nnamespace n {\n#endif\nint f() { }\n#ifdef A\n}\n#endif\nint g() { }", ["f", "g"]),
        ("#if 1\nnamespace n {\n#else\nnamespace m {\n#endif\nint f() { } }\nint g() { }", ["n::f", "g"]),
        ("#define A\n#ifdef A\nnamespace n {\n#endif\nint f() { }\n#ifdef A\n}\n#endif\nint g() { }", ["n::f", "g"]),
        ("#ifdef A\nint f(int a) {\n#else\nint f(long a) {\n#endif\n return 1; }\nint g() { }", ["f", "f", "g"]),
        ("#ifdef A\nnamespace n {\n#else\nnamespace m {\n#endif\nint f() { } }\nint g() { }", ["m::f", "g"]),
    ],
)
def test_definitions(text: str, expected: list[str] | list[tuple[str, str]] | None) -> None:
    special = {
        "bool A::op": ["A::operator()", "A::operator type", "operator<<"],
        "template <": [("f", "template function"), ("f", "instantiation"), ("A", "class instantiation")],
    }
    wanted = special[text[:10]] if expected is None else expected
    if all(isinstance(one, str) for one in wanted):
        assert [key for key, _ in found(text)] == wanted
    else:
        assert found(text) == wanted


def test_names_of_a_file_in_c_are_not_qualified() -> None:
    assert found("static int f() { } int g() { } int size = 3;", c=True) == [("g", "function"), ("size", "variable")]


def test_of_a_header_only_functions_that_are_not_inline_count() -> None:
    text = "inline int f() { } template <class T> T g() { } constexpr int h() { } int size = 3; int k() { }"
    assert found(text, header=True) == [("k", "function")]


def test_a_condition_that_does_not_hold_is_told() -> None:
    text = "#if A\nint f() { }\n#else\nint f() { }\n#endif\n#if _B\nint f() { }\n#endif"
    assert [one.certainty for one in scan(text).found] == [0, 2, 1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("class A { virtual void f(); virtual void g(); };", {"A": "f"}),
        ("class A { virtual ~A() = default; virtual int f() = 0; int g(); void h() override; };", {"A": "h"}),
        ("class A final : public B<int> { inline virtual void f(); void g() override { } };", {"A": ""}),
        ("class A { int f(); };", {}),
        (
            "struct API A { int x{1}; A() : x{2} { } struct B { ~B() override; }; virtual void f(int a = {}); };",
            {"A::B": "~B", "A": "f"},
        ),
        ("namespace n { template <class T> struct A { virtual void f(); }; }", {"n::A": "f"}),
    ],
)
def test_key_functions(text: str, expected: dict[str, str]) -> None:
    assert scan(text, header=True).classes == expected


@pytest.mark.parametrize(
    "text",
    [
        "#define A(x) A(x); A(x)\nA(1);",
        "#define A B C B\n#define B C A C\n#define C A B A\nA x;",
        "int f(" * 20_000,
        "{" * 50_000,
        "namespace a { " * 20_000,
        "#if 1\n" * 20_000 + "int f() { }",
        "a<" * 20_000 + "{ } f(x) { }",
        "x::" * 20_000 + "f() { }",
        "f(a) : " * 5_000 + "x",
        '"' * 50_001,
        "/*" * 50_000,
        "#" * 50_000,
        "# define X \\\n" * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_text_that_is_no_source_is_read_to_its_end(text: str) -> None:
    scanner = scan(text)
    assert len(scanner.found) <= 20_000


TOKENS = [
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    ":",
    "::",
    "=",
    "<",
    ">",
    '"',
    "'",
    "~",
    "*",
    "&",
    "#",
    "\\",
    "/*",
    "*/",
    "//",
    "namespace",
    "class",
    "enum",
    "template",
    "operator",
    "extern",
    "static",
    "const",
    "A",
    "B",
    "f",
    "int",
    "virtual",
    "override",
    "default",
    "#if",
    "#else",
    "#elif",
    "#endif",
    "#define",
    "#undef",
]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([*TOKENS, "\n", "\n#define A(x)", "\n#if A", "\n#else", "\n#endif", "[[", "->"]), max_size=60
    )
)
def test_any_text_is_read(tokens: list[str]) -> None:
    text = " ".join(tokens)
    assert all(one.key and one.certainty in (0, 1, 2) for one in scan(text).found)
    assert all(one.kind == "function" for one in scan(text, header=True).found)


def test_an_included_function_gets_the_names_that_a_macro_is_given() -> None:
    text = "".join(f'#define NAME f_{bits}\n#define BITS {bits}\n#include "f.h"\n#undef NAME\n' for bits in (8, 16))
    assert found(text, c=True) == [("f_8", "function"), ("f_16", "function")]
    assert found(text, c=True, header=True) == []
    assert found("#define NAME f\nint g() { }", c=True) == [("g", "function")]
