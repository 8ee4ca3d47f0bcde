import pytest

from opsieve.verify.mirror import mirror_package


@pytest.fixture
def package(tmp_path):
    for path in ("lib/one.so", "lib/two.so", "lib/deep/three.so", "nn/__init__.py", "__init__.py"):
        (tmp_path / "site/torch" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site/torch" / path).write_text(f"stock {path}")
    return tmp_path / "site/torch"


def contents(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()} | {
        f"nn/{p.name}": p.read_text() for p in (folder / "nn").iterdir()
    }


def test_only_what_is_replaced_differs_and_the_package_stays_as_it_was(package, tmp_path):
    before = contents(package)
    (tmp_path / "slim.so").write_text("slim")
    replacements = {"lib/two.so": tmp_path / "slim.so", "lib/deep/three.so": tmp_path / "slim.so"}
    mirror = mirror_package(package, tmp_path / "mirror", replacements)
    assert mirror == tmp_path / "mirror/torch"
    assert contents(mirror) == {**before, "lib/two.so": "slim", "lib/deep/three.so": "slim"}
    assert contents(package) == before
    assert (mirror / "nn").is_symlink()
    assert not (mirror / "lib").is_symlink()


def test_a_file_that_the_package_does_not_have_can_be_added(package, tmp_path):
    (tmp_path / "new.py").write_text("new")
    mirror = mirror_package(package, tmp_path / "mirror", {"new.py": tmp_path / "new.py"})
    assert (mirror / "new.py").read_text() == "new"
    assert (mirror / "__init__.py").read_text() == "stock __init__.py"
