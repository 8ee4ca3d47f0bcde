"""Which calls register the custom classes that a schema names."""

import pytest

from opsieve.runtimes.source.association.class_set_up import SetUps
from opsieve.runtimes.source.association.cpp_text import CppText

SOURCE = """
constexpr const char* name_of(int x) {
  switch (x) { case 2: return "Conv2dParams"; default: return "Conv3dParams"; }
}
template <int dimensions> API int register_conv() {
  static auto it = torch::selective_class_<Conv<dimensions>>("quantized", TORCH_SELECTIVE_CLASS(name_of(dimensions)));
  return 0;
}
int register_linear() {
  static auto it = torch::selective_class_<Linear>("quantized", TORCH_SELECTIVE_CLASS("LinearParams"));
  return 0;
}
"""
CALLS = ("ns::register_linear()", "register_conv<2>()", "register_conv<3>()")


@pytest.fixture
def set_ups() -> SetUps:
    return SetUps.read([CppText(SOURCE), CppText('int unrelated() { f("Other"); return 0; }')])


@pytest.mark.parametrize(
    ("classes", "needed"),
    [
        (["quantized.LinearParams"], CALLS[:1]),
        (["quantized.Conv2dParams"], CALLS[1:2]),
        (["quantized.Conv3dParams", "a.b.LinearParams"], (CALLS[0], CALLS[2])),
        (["quantized.Elsewhere"], CALLS),
        (["quantized.LinearParams", "quantized.Elsewhere"], CALLS),
    ],
)
def test_a_schema_brings_the_classes_that_it_names(
    set_ups: SetUps, classes: list[str], needed: tuple[str, ...]
) -> None:
    schema = f"f({', '.join(f'__torch__.torch.classes.{name} x' for name in classes)}) -> Tensor"
    assert set_ups.needed(schema, CALLS) == needed


def test_calls_that_nobody_knows_are_always_made(set_ups: SetUps) -> None:
    schema = "f(__torch__.torch.classes.quantized.LinearParams x) -> Tensor"
    assert set_ups.needed(schema, ("unrelated()", *CALLS)) == ("unrelated()", CALLS[0])


def test_where_no_number_fits_all_of_them_are_needed(set_ups: SetUps) -> None:
    schema = "f(__torch__.torch.classes.quantized.Conv2dParams x) -> Tensor"
    assert set_ups.needed(schema, ("register_conv<4>()", "register_conv<5>()")) == (
        "register_conv<4>()",
        "register_conv<5>()",
    )


def test_unbalanced_text_is_passed_over() -> None:
    set_ups = SetUps.read([CppText("int broken() { class_<A>(")])
    assert set_ups.needed("f(__torch__.torch.classes.q.A x)", ("broken()",)) == ("broken()",)
