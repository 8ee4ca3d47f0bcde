import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opsieve.errors import BuildFailed, OutputExists
from opsieve.runtimes.source.output import RuntimeParts, write_folder
from opsieve.runtimes.source.output.folder import refuse_output
from opsieve.select.store import selection_from_json

APPLICATION = "#include <toy/all.h>\n#ifdef TOY_OTHER\n#error\n#endif\nint main() { return three() - ADDED - 1; }\n"


def test_the_folder_holds_what_it_says(parts: RuntimeParts, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(parts, out)
    files = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert files == {
        "README.txt",
        "bin/run",
        "capabilities.json",
        "account.json",
        "command.txt",
        "include/inner/toy/macro.h",
        "include/toy/all.h",
        "include/toy/macro.h",
        "include/toy/near.h",
        "lib/cmake/OpsieveTorch/OpsieveTorchConfig.cmake",
        "lib/cmake/OpsieveTorch/OpsieveTorchConfigVersion.cmake",
        "lib/libopsieve_torch.a",
        "roots.rsp",
        "selected_operators.yaml",
        "selection.json",
        "sizes.json",
        "sizes.txt",
    }
    assert subprocess.run([out / "bin/run"], check=False).returncode == 0
    assert (out / "command.txt").read_text() == "opsieve build m.ptl -o 'a folder'\n"
    assert selection_from_json(out / "selection.json") == parts.selection
    assert "aten::add.Tensor" in (out / "selected_operators.yaml").read_text()
    assert len([path for path in tmp_path.iterdir() if path.name.startswith(".out")]) == 0


def test_the_command_of_the_readme_works(parts: RuntimeParts, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(parts, out)
    (tmp_path / "app.cpp").write_text(APPLICATION)
    text = (out / "README.txt").read_text()
    command = text[text.index("  c++") : text.index("\n\nWhat an application")].replace("HERE", str(out))
    command = command.replace("c++ ", f"{parts.compiler.path} ", 1)
    subprocess.run(f"{command} -o app", shell=True, cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "app"], check=False).returncode == 0


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_cmake_finds_and_links_it_wherever_it_is_moved(parts: RuntimeParts, tmp_path: Path) -> None:
    write_folder(parts, tmp_path / "out")
    moved = (tmp_path / "out").rename(tmp_path / "moved folder")
    project = tmp_path / "project"
    project.mkdir()
    (project / "main.cpp").write_text(APPLICATION)
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(app CXX)\nfind_package(OpsieveTorch 2.6.0 REQUIRED)\n"
        "add_executable(app main.cpp)\ntarget_link_libraries(app PRIVATE OpsieveTorch::OpsieveTorch)\n"
    )
    configure = ["cmake", "-S", project, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={moved}"]
    compiler = f"-DCMAKE_CXX_COMPILER={parts.compiler.path}"
    subprocess.run([*configure, compiler], check=True, capture_output=True)
    subprocess.run(["cmake", "--build", tmp_path / "b"], check=True, capture_output=True)
    assert subprocess.run([tmp_path / "b/app"], check=False).returncode == 0
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(app CXX)\nfind_package(OpsieveTorch 2.5.0 REQUIRED)\n"
    )
    other = subprocess.run([*configure, compiler], check=False, capture_output=True, text=True)
    assert "2.6.0" in other.stderr
    assert other.returncode != 0


def test_a_shared_library_lies_beside_the_archive(parts: RuntimeParts, tmp_path: Path) -> None:
    shared = tmp_path / "libopsieve_torch.so"
    shared.write_bytes(b"elf")
    write_folder(replace(parts, shared=shared), tmp_path / "out")
    assert (tmp_path / "out/lib/libopsieve_torch.so").read_bytes() == b"elf"
    config = (tmp_path / "out/lib/cmake/OpsieveTorch/OpsieveTorchConfig.cmake").read_text()
    assert "lib/libopsieve_torch.so" in config


def test_nothing_is_replaced_without_force(parts: RuntimeParts, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(parts, out)
    with pytest.raises(OutputExists, match="--force"):
        write_folder(parts, out)
    (out / "stale").write_text("")
    write_folder(parts, out, force=True)
    assert not (out / "stale").exists()


def test_force_does_not_replace_a_folder_of_the_users(tmp_path: Path) -> None:
    out = tmp_path / "documents"
    out.mkdir()
    refuse_output(out, force=True)
    (out / "thesis.txt").write_text("")
    (out / "selection.json").write_text("")
    with pytest.raises(OutputExists, match="no folder that opsieve made"):
        refuse_output(out, force=True)


def test_force_does_not_replace_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(OutputExists):
        refuse_output(tmp_path / "out", force=True)


def test_a_failure_leaves_what_was_there(parts: RuntimeParts, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(parts, out)
    before = sorted(tmp_path.iterdir())
    broken = replace(parts, objects={"gone.cpp": tmp_path / "gone.o"})
    with pytest.raises(BuildFailed):
        write_folder(broken, out, force=True)
    with pytest.raises(BuildFailed, match="cannot be written"):
        write_folder(replace(parts, program=tmp_path / "gone"), out, force=True)
    assert sorted(tmp_path.iterdir()) == before
    assert (out / "README.txt").is_file()
