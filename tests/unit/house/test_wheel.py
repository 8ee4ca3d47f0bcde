"""The wheel of this package holds everything that the package needs at run time."""

import zipfile
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[3]


def test_every_file_of_the_package_is_in_the_wheel(tmp_path):
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("opsieve/")}
    source = {
        file.relative_to(ROOT / "src").as_posix()
        for file in (ROOT / "src" / "opsieve").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert packed == source
    assert "opsieve/runtimes/wheel/library/guard/guard_x86_64.bin" in packed
