"""Lists of interpreter operators."""

from opsieve.runtimes.source.association.cpp_text import CppText
from opsieve.runtimes.source.association.lists import OperatorList, find_lists
from opsieve.runtimes.source.association.sites import SiteKind

VECTOR = """
static const std::vector<OperatorGeneratorArgs> args{
    OperatorGeneratorArgs(TORCH_SELECTIVE_SCHEMA("aten::len.t(t[] a) -> int"), [](Stack& s) { f(s, ")"); }, alias()),
    OperatorGeneratorArgs(TORCH_SELECTIVE_SCHEMA("prim::x" ".y(int a) -> int"), fn, alias()),
    OperatorGeneratorArgs(computed_name, fn, alias()),
};
int between = 0;
RegisterOperators reg(([]() { auto v = createOperators(args); return v; })());
int after = 0;
"""


def no_preprocessor(text: str) -> str:
    raise AssertionError("there is nothing to expand here")


def lists_of(text: str, expand: object = no_preprocessor) -> list[OperatorList]:
    return find_lists(CppText(text, "x.cpp"), expand)  # type: ignore[arg-type]


def test_a_vector_of_arguments_is_taken_apart_and_registered_behind_its_last_use() -> None:
    (found,) = lists_of(VECTOR)
    assert found.kind is SiteKind.INTERPRETER
    assert [str(element.operator) for element in found.elements] == ["aten::len.t", "prim::x.y"]
    assert found.remaining == "OperatorGeneratorArgs(computed_name, fn, alias())"
    assert VECTOR[found.insert_at :].strip() == "int after = 0;"
    assert "createOperators({X})" in found.call.format("X")


def test_macros_in_a_list_are_expanded_by_the_preprocessor() -> None:
    text = VECTOR.replace("OperatorGeneratorArgs(computed_name, fn, alias()),", "DEFINE_BOTH(add, +),")
    seen = []

    def expand(marked: str) -> str:
        seen.append(marked)
        both = (
            'OperatorGeneratorArgs(SelectiveStr<is("aten::add" ".int(int a) -> int")>("aten::add" ".int(int a) -> int")'
            ", fn, alias()), "
            'OperatorGeneratorArgs(SelectiveStr<true>("aten::add.float(float a) -> float"), fn, alias())'
        )
        return '# 1 "<stdin>"\n' + marked.replace("DEFINE_BOTH(add, +)", f'{both}\n# 7 "x.cpp"\n')

    (found,) = lists_of(text, expand)
    assert len(seen) == 1
    assert [str(e.operator) for e in found.elements] == ["aten::len.t", "prim::x.y", "aten::add.int", "aten::add.float"]
    assert found.remaining == ""


def test_the_argument_of_a_registering_object() -> None:
    text = (
        'RegisterOperators reg({Operator("aten::a(int x) -> int", f, a()), Operator(prim::Constant, g, a())});\nint x;'
    )
    (found,) = lists_of(text)
    assert [str(e.operator) for e in found.elements] == ["aten::a"]
    assert found.remaining == "Operator(prim::Constant, g, a()), {}, {}"
    assert text[found.insert_at :] == "\nint x;"
    assert found.call.format("X").endswith("registered({X, {}});")


def test_the_lite_interpreters_own_functions() -> None:
    text = (
        "static const C10_UNUSED std::array<mobile::prim_op_fn_register, 2> op_reg = {\n"
        '    mobile::prim_op_fn_register("prim::TupleIndex", tupleIndex),\n'
        '    // mobile::prim_op_fn_register("aten::size", size)\n'
        '    mobile::prim_op_fn_register("aten::Bool.Tensor", boolTensor)};\n'
    )
    (found,) = lists_of(text)
    assert found.kind is SiteKind.PROMOTED
    assert [str(e.operator) for e in found.elements] == ["prim::TupleIndex", "aten::Bool.Tensor"]
    assert (found.start, text[found.end :]) == (0, "\n")


def test_a_list_that_the_preprocessor_removes_is_left_alone() -> None:
    text = (
        "#ifdef NEVER\n"
        + VECTOR.replace("fn, alias()),\n    OperatorGeneratorArgs(c", "fn, MACRO()),\n M(c")
        + "#endif\n"
    )
    found = lists_of(text, lambda marked: "nothing")
    assert [len(item.elements) for item in found] == [2]
