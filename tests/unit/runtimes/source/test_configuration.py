"""The headers that PyTorch's own build system would write."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.configuration import configured_headers, expand


def test_names_are_replaced_and_the_unknown_is_zero() -> None:
    assert expand('#define A() @A@\n#define V "${V}"\n#define B @B@\n', {"A": "1", "V": "2.6.0"}) == (
        '#define A() 1\n#define V "2.6.0"\n#define B 0\n'
    )


def test_conditional_definitions() -> None:
    template = "#cmakedefine ON\n#cmakedefine OFF\n# cmakedefine01 ONE\n#cmakedefine01 ZERO\n#cmakedefine NAME @NAME@\n"
    assert expand(template, {"ON": "1", "OFF": "OFF", "ONE": "1", "NAME": "x"}) == (
        "#define ON\n/* #undef OFF */\n#define ONE 1\n#define ZERO 0\n#define NAME x\n"
    )


@given(st.text(alphabet="ab@${}#\n ", max_size=40))
def test_text_without_names_stays(text: str) -> None:
    kept = text.replace("@", "").replace("$", "")
    assert expand(kept, {}) == kept


def test_a_tree_gets_the_headers_that_it_has_templates_for(tmp_path: Path) -> None:
    (tmp_path / "aten/src/ATen").mkdir(parents=True)
    (tmp_path / "aten/src/ATen/Config.h.in").write_text("#define AT_PARALLEL_OPENMP @AT_PARALLEL_OPENMP@\n")
    version = tmp_path / "torch/csrc/api/include/torch"
    version.mkdir(parents=True)
    (version / "version.h.in").write_text("#define TORCH_VERSION_MINOR @TORCH_VERSION_MINOR@\n")
    headers = configured_headers(tmp_path, "1.13.1", {"AT_PARALLEL_OPENMP": "1"})
    assert headers["ATen/Config.h"] == "#define AT_PARALLEL_OPENMP 1\n"
    assert headers["torch/version.h"] == headers["torch/csrc/api/include/torch/version.h"]
    assert headers["torch/version.h"] == "#define TORCH_VERSION_MINOR 13\n"
    assert set(headers) == {"ATen/Config.h", "torch/version.h", "torch/csrc/api/include/torch/version.h"}


def test_a_folder_without_templates_is_no_tree(tmp_path: Path) -> None:
    with pytest.raises(InvalidFile, match=r"Config\.h\.in"):
        configured_headers(tmp_path, "2.6.0", {})
