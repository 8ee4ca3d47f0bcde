"""PyTorch's own libraries, made slim without any analysis: a few families of functions are removed by their names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from opsieve.code.elf import ElfFile
from opsieve.code.functions import read_functions
from opsieve.installed import TorchInstall, find_torch
from opsieve.runtimes.wheel.library.frames import read_frames
from opsieve.runtimes.wheel.library.guard.table import RemovedFunctions
from opsieve.runtimes.wheel.library.kept import KeptCode
from opsieve.runtimes.wheel.library.slim import SlimPlan, slim_library
from tests.functional.runtimes.library.sample_library import MemoryImage, unwind_records

pytestmark = pytest.mark.torch

LIBRARIES = ("libtorch_cpu.so", "libtorch_python.so", "libc10.so", "libshm.so", "libtorch.so")
REMOVED = re.compile(rb"^mkl_(dft|spblas|sparse)_|^owngDFT|8GlooStore")
USE = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
images = torch.randn(2, 3, 32, 32)
for threads in (1, 2):
    torch.set_num_threads(threads)
    loss = model(images).square().mean()
    loss.backward()
    print(loss.item(), model[0].weight.grad.double().sum().item())
traced = torch.jit.trace(torch.nn.LSTM(4, 5), torch.ones(2, 1, 4))
print(traced(torch.ones(2, 1, 4))[0].double().sum().item())
for wrong in (lambda: model(torch.randn(2, 4, 8, 8)), lambda: torch.ones(2) @ torch.ones(3), lambda: torch.ones(3)[7]):
    try:
        wrong()
    except (RuntimeError, IndexError) as error:
        print(type(error).__name__, error)
sys.stdout.flush()
if sys.argv[1:] == ["fft"]:
    torch.fft.fft(images)
"""


@pytest.fixture(scope="module")
def install() -> TorchInstall:
    return find_torch()


@pytest.fixture(scope="module")
def slim_site(install: TorchInstall, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site-packages folder whose torch is the installed one, but for the libraries."""
    site = tmp_path_factory.mktemp("site")
    for folder, _, files in os.walk(install.package):
        new = site / "torch" / Path(folder).relative_to(install.package)
        new.mkdir()
        for name in files:
            if name not in LIBRARIES:
                (new / name).symlink_to(Path(folder) / name)
    for name in LIBRARIES:
        elf = ElfFile(install.library(name))
        slim_library(elf, removing(elf, REMOVED), site / "torch/lib" / name)
    return site


def removing(elf: ElfFile, pattern: re.Pattern[bytes]) -> SlimPlan:
    functions = read_functions(elf)
    names = elf.names_of(functions.names)
    removed = np.array([pattern.search(name) is not None for name in names])
    gone = np.flatnonzero(removed)
    table = RemovedFunctions(
        functions.starts[gone],
        functions.ends[gone],
        [names[i] for i in gone],
        np.full(len(gone), -1),
        (),
        "none",
    )
    return SlimPlan(code=KeptCode.of(functions, ~removed), removed=table)


def run(site: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, "PYTHONPATH": str(site), **environment}
    command = [sys.executable, "-c", USE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=variables, check=False)


@pytest.mark.parametrize("name", LIBRARIES)
def test_the_unwinding_table_agrees_with_the_linkers_index(install: TorchInstall, name: str) -> None:
    """`.eh_frame_hdr` lists the same records, which the linker found for itself."""
    elf = ElfFile(install.library(name))
    frames, header = read_frames(elf), elf.section(".eh_frame_hdr")
    assert frames is not None
    contents = elf.contents(header)
    assert contents[:4].tolist() == [1, 0x1B, 3, 0x3B]
    count = int(contents[8:12].view("<u4")[0])
    index = contents[12 : 12 + 8 * count].view("<i4").reshape(-1, 2).astype(np.int64) + header.address
    order = np.argsort(frames.starts, kind="stable")
    assert np.array_equal(frames.starts[order], index[:, 0])
    assert np.array_equal(np.sort(frames.positions) + frames.section.address, np.sort(index[:, 1]))


@pytest.mark.parametrize("name", ["libc10.so", "libshm.so"])
def test_copied_unwinding_records_say_the_same(install: TorchInstall, slim_site: Path, name: str) -> None:
    old, new = ElfFile(install.library(name)), MemoryImage(slim_site / "torch/lib" / name)
    assert unwind_records(new) == unwind_records(old)


@pytest.mark.parametrize("binding", [{}, {"LD_BIND_NOW": "1"}])
def test_torch_computes_and_raises_the_same(install: TorchInstall, slim_site: Path, binding: dict[str, str]) -> None:
    stock, slim = run(install.site, **binding), run(slim_site, **binding)
    assert stock.returncode == 0, stderr(stock)
    assert stock.stdout.count("\n") == 6
    assert (slim.stdout, slim.stderr, slim.returncode) == (stock.stdout, stock.stderr, 0)


@pytest.mark.parametrize("options", [{}, {"PYTHONFAULTHANDLER": "1"}])
def test_the_guard_speaks_from_inside_torch(slim_site: Path, options: dict[str, str]) -> None:
    done = run(slim_site, "fft", **options)
    assert done.returncode == 86
    assert re.search(r"libtorch_cpu\.so: the program reached code .*\n  function: mkl_dft_\w+ \(\+0x", done.stderr)
    assert done.stdout.count("\n") == 6


def test_what_was_removed_is_not_in_the_file(install: TorchInstall, slim_site: Path) -> None:
    name = "torch/lib/libtorch_cpu.so"
    stock, slim = (install.site / name).stat().st_size, (slim_site / name).stat().st_size
    functions = removing(ElfFile(install.site / name), REMOVED).removed
    assert functions is not None
    removed = int((functions.ends - functions.starts).sum())
    assert removed > 30_000_000
    # The symbol table (89 MB) goes too; the end of a family may leave a page half empty.
    assert slim < stock - removed - 80_000_000


def stderr(done: subprocess.CompletedProcess[str]) -> str:
    return done.stderr[-2000:]
