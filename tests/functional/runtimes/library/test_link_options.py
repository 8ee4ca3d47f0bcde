"""Shapes of libraries that other options of the linkers and compilers give."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.code.functions import read_functions
from opsieve.errors import UnsupportedLibrary
from opsieve.runtimes.wheel.library.kept import KeptCode
from opsieve.runtimes.wheel.library.slim import SlimPlan, slim_library
from tests.functional.runtimes.library.sample_library import build_sample
from tests.functional.runtimes.library.test_sample import RAISING


@pytest.mark.parametrize(
    ("linker", "options"),
    [
        ("bfd", "-Wl,-z,now"),
        ("bfd", "-Wl,-z,now -fno-plt"),
        ("bfd", "-fcf-protection=full -Wl,-z,ibtplt"),
        ("bfd", "-Wl,-z,separate-code"),
        ("bfd", "-Wl,-z,noseparate-code"),
        ("bfd", "-Wl,-z,max-page-size=0x200000"),
        ("bfd", "-Wl,--hash-style=sysv"),
        ("bfd", "-Wl,-Bsymbolic -g"),
        ("bfd", "-ffunction-sections -Wl,--gc-sections -O2"),
        ("gold", "-Wl,-z,now -Wl,-z,relro"),
        ("gold", "-O2 -g -Wl,--icf=all"),
        ("lld", "-Wl,-z,now -Wl,-z,separate-loadable-segments"),
        ("lld", "-Wl,-z,nognustack -Wl,--rosegment -O2"),
        ("lld", "-Wl,--no-rosegment"),
    ],
)
def test_every_shape_works(linker: str, options: str, tmp_path: Path) -> None:
    sample = build_sample(tmp_path, linker, *options.split())
    slim = tmp_path / "slim"
    slim_library(sample.elf(), sample.plan(), slim / "libsample.so")
    before = sample.run("ordinary", libraries=tmp_path)
    after = sample.run("ordinary", *RAISING, libraries=slim)
    lines = after.stdout.removeprefix(before.stdout).splitlines()
    assert after.stdout.startswith(before.stdout), after.stderr
    assert len(before.stdout) > 500
    assert len(lines) == len(RAISING)
    assert all(line.startswith("raised: function ") and line.endswith(" was removed") for line in lines), lines
    assert after.returncode == 0
    guarded = sample.run("unlisted", libraries=slim)
    assert (guarded.returncode, "removed_unlisted(int)" in guarded.stderr) == (86, True)


def test_packed_relocations_can_only_be_stripped(tmp_path: Path) -> None:
    """Their pointers are not read, so a constant or a function that only they name could get lost."""
    with pytest.raises(UnsupportedLibrary, match="relr"):
        build_sample(tmp_path, "bfd", "-Wl,-z,pack-relative-relocs")
    elf = ElfFile(tmp_path / "libsample.so")
    functions = read_functions(elf)
    everything = KeptCode.of(functions, np.ones(len(functions), bool))
    with pytest.raises(UnsupportedLibrary, match="relr"):
        slim_library(elf, SlimPlan(code=everything), tmp_path / "out.so")
    slim_library(elf, SlimPlan(), tmp_path / "slim/libsample.so")
    outputs = [
        subprocess.check_output([tmp_path / "driver", "ordinary"], env={"LD_LIBRARY_PATH": f"{folder}:{tmp_path}"})
        for folder in (tmp_path, tmp_path / "slim")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0]) > 500
