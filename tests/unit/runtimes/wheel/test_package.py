import csv
import zipfile
from importlib.metadata import distributions

import pytest

from opsieve.errors import MissingInstallation, OutputExists
from opsieve.runtimes.wheel.package import assemble
from opsieve.runtimes.wheel.package_plan import plan_package
from opsieve.runtimes.wheel.wheel_file import record_entry
from tests.unit.runtimes.wheel.fake_site import (
    BYTECODE,
    DIST_INFO,
    DROPPED,
    FOR_BUILDING,
    KEPT,
    install_fake_torch,
)

LIBRARY = "torch/lib/libtorch_cpu.so"


@pytest.fixture
def install(tmp_path):
    return install_fake_torch(tmp_path / "site")


@pytest.fixture
def slim_library(tmp_path):
    (tmp_path / "slim.so").write_bytes(b"\x7fELF slim")
    return tmp_path / "slim.so"


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_plan_sorts_every_file_and_writes_nothing(install, slim_library):
    plan = plan_package(install, {LIBRARY: slim_library})
    assert set(plan.kept) == set(KEPT)
    assert {dropped.path for dropped in plan.dropped} == {*DROPPED, *FOR_BUILDING}
    assert all(dropped.reason and dropped.size for dropped in plan.dropped)
    saved = sum(dropped.size for dropped in plan.dropped) + len(KEPT[LIBRARY]) - 9
    assert plan.stock_bytes - plan.kept_bytes == saved


def test_with_headers_keeps_what_compiling_needs(install):
    assert set(plan_package(install, {}, with_headers=True).kept) == {*KEPT, *FOR_BUILDING}


def test_the_folder_holds_the_kept_files_and_the_slim_library(install, slim_library, tmp_path):
    report = assemble(install, {LIBRARY: slim_library}, tmp_path / "out", wheel=False)
    written = contents(report.folder)
    package = {path for path in written if not path.startswith("torch-")}
    assert package == set(KEPT)
    assert written[LIBRARY] == b"\x7fELF slim"
    assert BYTECODE not in written
    assert report.wheel is None
    assert report.kept_bytes == sum(map(len, written.values()))
    assert [(r.path, r.before, r.after) for r in report.replaced] == [(LIBRARY, len(KEPT[LIBRARY]), 9)]


def test_version_is_told_the_same_everywhere(install, tmp_path):
    report = assemble(install, {}, tmp_path / "out")
    (distribution,) = distributions(path=[str(report.folder)])
    assert distribution.version == report.version
    assert f"__version__ = '{report.version}'" in (report.folder / "torch/version.py").read_text()
    assert report.wheel.name == f"torch-{report.version}-cp311-cp311-manylinux_2_28_x86_64.whl"
    assert (report.folder / f"torch-{report.version}.dist-info").is_dir()


def test_record_in_the_wheel_lists_exactly_its_files_with_their_hashes(install, slim_library, tmp_path):
    report = assemble(install, {LIBRARY: slim_library}, tmp_path / "out")
    with zipfile.ZipFile(report.wheel) as archive:
        archive.extractall(tmp_path / "unpacked")
        names = archive.namelist()
    record_path = f"torch-{report.version}.dist-info/RECORD"
    with (tmp_path / "unpacked" / record_path).open(newline="") as file:
        record = {path: (digest, size) for path, digest, size in csv.reader(file)}
    assert sorted(record) == sorted(names)
    assert record.pop(record_path) == ("", "")
    for path, (digest, size) in record.items():
        entry = record_entry(tmp_path / "unpacked", path)
        assert (entry.digest, str(entry.size)) == (digest, size)
    assert contents(tmp_path / "unpacked") == contents(report.folder)


def test_same_inputs_give_the_same_wheel_and_another_library_another_version(install, slim_library, tmp_path):
    first = assemble(install, {LIBRARY: slim_library}, tmp_path / "one")
    second = assemble(install, {LIBRARY: slim_library}, tmp_path / "two")
    assert first.wheel.name == second.wheel.name
    assert first.wheel.read_bytes() == second.wheel.read_bytes()
    slim_library.write_bytes(b"\x7fELF slimmer")
    assert assemble(install, {LIBRARY: slim_library}, tmp_path / "three").version != first.version


def test_the_executable_bit_survives_and_nothing_is_linked_to_the_installation(install, tmp_path):
    (install.site / LIBRARY).chmod(0o444)
    folder = assemble(install, {}, tmp_path / "out", wheel=False).folder
    assert (folder / "torch/bin/torch_shm_manager").stat().st_mode & 0o111
    assert not (folder / "torch/version.py").stat().st_mode & 0o111
    before = (install.site / LIBRARY).read_bytes()
    (folder / LIBRARY).write_bytes(b"changed by the user")
    assert (install.site / LIBRARY).read_bytes() == before


def test_existing_output_is_only_replaced_by_force(install, slim_library, tmp_path):
    assemble(install, {}, tmp_path / "out")
    with pytest.raises(OutputExists):
        assemble(install, {}, tmp_path / "out")
    report = assemble(install, {LIBRARY: slim_library}, tmp_path / "out", force=True)
    assert (report.folder / LIBRARY).read_bytes() == b"\x7fELF slim"


def test_force_leaves_no_earlier_wheel_beside_the_new_one_and_nothing_else_is_touched(install, slim_library, tmp_path):
    first = assemble(install, {}, tmp_path / "out")
    (tmp_path / "out/torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").write_bytes(b"the user's own")
    second = assemble(install, {LIBRARY: slim_library}, tmp_path / "out", force=True)
    assert first.wheel != second.wheel
    assert {path.name for path in (tmp_path / "out").glob("*.whl")} == {
        second.wheel.name,
        "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl",
    }
    assemble(install, {}, tmp_path / "out", wheel=False, force=True)
    assert not second.wheel.exists()


def test_a_failure_leaves_nothing_behind(install, tmp_path):
    (install.site / "torch/version.py").write_text("nothing here\n")
    with pytest.raises(MissingInstallation):
        assemble(install, {}, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_replacing_a_file_that_is_not_kept_is_refused(install, slim_library):
    with pytest.raises(MissingInstallation) as caught:
        plan_package(install, {"torch/lib/libnothing.so": slim_library})
    assert "libnothing.so" in str(caught.value)


def test_a_deleted_file_is_missed_only_when_it_must_stay(install):
    (install.site / "torch/test/wrapdim_test").unlink()
    assert plan_package(install, {}).kept
    (install.site / "torch/__init__.py").unlink()
    with pytest.raises(MissingInstallation, match="does not have this file"):
        plan_package(install, {})


@pytest.mark.parametrize("name", ["RECORD", "METADATA"])
def test_an_installation_without_its_lists_is_refused(install, name):
    record = install.site / DIST_INFO / "RECORD"
    if name == "RECORD":
        record.unlink()
    else:
        record.write_text(record.read_text().replace(f"{DIST_INFO}/METADATA,,\n", ""))
    with pytest.raises(MissingInstallation, match="RECORD"):
        plan_package(install, {})
