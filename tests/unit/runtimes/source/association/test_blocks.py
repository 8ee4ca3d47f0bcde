"""`TORCH_LIBRARY*` blocks."""

from opsieve.runtimes.source.association.blocks import Block, find_blocks
from opsieve.runtimes.source.association.cpp_text import CppText


def blocks_of(text: str) -> list[Block]:
    return find_blocks(CppText(text, "x.cpp"))


def test_schemas_with_and_without_tags() -> None:
    (block,) = blocks_of("""
TORCH_LIBRARY(aten, m) {
  const std::vector<at::Tag> tags_0 = {at::Tag::core, at::Tag::pointwise};
  m.def("add.Tensor(Tensor self, Tensor other) -> Tensor", tags_0);
  m.def("sub(Tensor self) -> Tensor", {});
  m.def(TORCH_SELECTIVE_SCHEMA("aten::mul(Tensor self) -> Tensor"));
}
""")
    assert not block.reason
    assert (block.namespace, block.key) == ("aten", "")
    assert [(str(s.operator), s.tags) for s in block.statements] == [
        ("aten::add.Tensor", "{at::Tag::core, at::Tag::pointwise}"),
        ("aten::sub", "{}"),
        ("aten::mul", "{}"),
    ]
    assert len(block.dropped) == 1


def test_kernels_of_every_form() -> None:
    (block,) = blocks_of("""
TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("a", TORCH_FN(wrapper_CPU_a));
  m.impl("b", static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(at::native::b));
  m.impl(TORCH_SELECTIVE_NAME("aten::c.out"), native::c);
  m.impl("d", [](at::Tensor x) { return x; });
  m.impl("e", torch::CppFunction::makeFallthrough());
}
""")
    assert not block.reason
    assert [(str(s.operator), s.function) for s in block.statements] == [
        ("aten::a", "wrapper_CPU_a"),
        ("aten::b", "static_cast<at::Tensor (*)(const at::Tensor &, int64_t)>(at::native::b)"),
        ("aten::c.out", "native::c"),
        ("aten::d", None),
        ("aten::e", None),
    ]


def test_set_up_calls_come_before_schemas_that_name_a_class() -> None:
    (block,) = blocks_of("""
TORCH_LIBRARY(quantized, m) {
  m.set_python_module("x.y");
  register_linear_params();
  register_conv_params<2>();
  m.def("linear(Tensor x, __torch__.torch.classes.quantized.LinearPackedParamsBase w) -> Tensor");
  m.def("add(Tensor a, Tensor b) -> Tensor");
}
""")
    assert [s.set_up for s in block.statements] == [("register_linear_params()", "register_conv_params<2>()"), ()]
    assert len(block.dropped) == 3


def test_preprocessor_lines_between_statements_stay_between_them() -> None:
    text = """TORCH_LIBRARY_IMPL(aten, CPU, m) {
  m.impl("a", f);
#ifdef X // a bracket: (
  m.impl("b", g);
#endif
}
"""
    (block,) = blocks_of(text)
    assert [text[s.start : s.end] for s in block.statements] == ['m.impl("a", f)', 'm.impl("b", g)']


def test_a_block_with_something_else_stays_and_says_why() -> None:
    reasons = [
        block.reason
        for block in blocks_of("""
TORCH_LIBRARY_IMPL(_, CPU, m) { m.fallback(f); }
TORCH_LIBRARY(a, m) { for (auto x : y) { m.def(x); } }
TORCH_LIBRARY(b, m) { m.def(name); }
TORCH_LIBRARY(c, m) { m.def("c::x() -> ()").def("c::y() -> ()"); }
TORCH_LIBRARY_IMPL(d, CPU, m) { m.impl("x",
#ifdef A
  f
#else
  g
#endif
  ); }
""")
    ]
    assert "fallback" in reasons[0]
    assert "no registration" in reasons[1]
    assert "no literal" in reasons[2]
    assert "several calls" in reasons[3]
    assert "preprocessor line" in reasons[4]


def test_macro_definitions_and_comments_hold_no_block() -> None:
    assert not blocks_of(
        "#define TORCH_LIBRARY(ns, m) static void init_##ns(Library& m) {}\n// TORCH_LIBRARY(a, m) {\n"
    )
