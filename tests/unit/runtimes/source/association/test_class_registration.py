"""Schemas that name a custom class register it before they are registered themselves."""

from pathlib import Path

import pytest

from opsieve.runtimes.source.association.tree import associate

LIBRARY = """
TORCH_LIBRARY(quantized, m) {
  const std::vector<at::Tag> tags_0 = {at::Tag::core};
  register_linear();
  register_other();
  m.def("add(Tensor a, Tensor b) -> Tensor");
  DEFINITION
}
"""
CLASSES = """
int register_linear() { static auto it = torch::class_<A>("quantized", "LinearParams"); return 0; }
int register_other() { static auto it = torch::class_<B>("quantized", "OtherParams"); return 0; }
"""
SCHEMA = "linear(Tensor x, __torch__.torch.classes.quantized.LinearParams w) -> Tensor"


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (f'm.def("{SCHEMA}");', f'm.def("{SCHEMA}")'),
        (f'm.def(TORCH_SELECTIVE_SCHEMA("quantized::{SCHEMA}"), {{at::Tag::core}});',
         f'm.def("quantized::{SCHEMA}", {{at::Tag::core}})'),
        (f'm.def("{SCHEMA}", tags_0);', f'm.def("{SCHEMA}", {{at::Tag::core}})'),
        (f'm.def("{SCHEMA}", [](X x, W w) {{ return x; }});', f'm.def("{SCHEMA}", [](X x, W w) {{ return x; }})'),
    ],
    ids=["plain", "tagged", "tags by name", "with a function"],
)  # fmt: skip
def test_the_class_comes_first(tmp_path: Path, definition: str, expected: str) -> None:
    files = {"library.cpp": LIBRARY.replace("DEFINITION", definition), "classes.cpp": CLASSES}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    made = associate({name: tmp_path / name for name in files}, lambda _, text: text)
    (entry,) = (line for line in made.sources["library.cpp"].splitlines() if "LinearParams" in line)
    assert f"register_linear(); {expected})" in entry
    assert "register_other" not in made.sources["library.cpp"]
