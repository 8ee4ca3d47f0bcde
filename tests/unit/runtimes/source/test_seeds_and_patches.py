"""Sources that are linked by name, and sources that are changed."""

from pathlib import Path

import pytest

from opsieve.runtimes.source.patches import PATCHES, Patch, patched
from opsieve.runtimes.source.seeds import REGISTRAR, seed_sources


def test_sources_that_no_symbol_pulls_in_are_seeds(tmp_path: Path) -> None:
    texts = {
        "select.cpp": "TORCH_LIBRARY_IMPL( _ , BackendSelect, m) { m.fallback(f()); }",
        "python.cpp": "TORCH_LIBRARY_IMPL(_, Python, m) { m.fallback(f()); }",
        "guard.cpp": "C10_REGISTER_GUARD_IMPL(CPU, CPUGuardImpl);",
        "other.cpp": "int x;",
        "kernel.S": "BEGIN_FUNCTION kernel",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    seeds = seed_sources({name: tmp_path / name for name in texts})
    assert set(seeds) == {REGISTRAR, "select.cpp", "guard.cpp", "kernel.S"}
    assert all(seeds.values())


@pytest.mark.parametrize("patch", PATCHES, ids=lambda patch: f"{Path(patch.file).name}-{patch.old[:30]}")
def test_a_patch_changes_its_own_file_only(patch: Patch) -> None:
    assert patched(patch.file, f"a {patch.old} b") == f"a {patch.new} b"
    assert patched("other.cpp", patch.old) == patch.old
    assert patched(patch.file, "nothing to change") == "nothing to change"


def test_messages_are_explained_where_they_are_made() -> None:
    assert "explained" in patched("c10/util/Exception.cpp", "Error() : msg_(std::move(msg)) {}")
