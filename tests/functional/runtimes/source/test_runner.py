"""The runner, with the full interpreter, linked against the installed PyTorch: its own answers, files and messages."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from opsieve.installed import TorchInstall
from opsieve.runtimes.source.workspace import SUPPORT

pytestmark = pytest.mark.torch

MODEL = """
import sys, torch
class Model(torch.nn.Module):
    def forward(self, x, times: int = 2, flag: bool = False):
        y = x * times
        lazy = y[:, ::2].to(torch.complex64).conj()
        return {"whole": y}, [y.t(), torch.argmax(y, 1)], (times, float(times), flag, None), lazy
    @torch.jit.export
    def kind(self, x):
        return x + 1
    @torch.jit.export
    def wide(self, x):
        return x.to(torch.bfloat16)
torch.jit.script(Model()).save(sys.argv[1])
"""
SHAPE = ("--shape", "5,4")


class Runner:
    """The program and a folder that it works in."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.program = program
        self.folder = folder

    def __call__(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [self.program, *words], cwd=self.folder, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == status, done.stderr
        return done

    def json(self, *words: str, status: int = 0) -> dict[str, object]:
        found: dict[str, object] = json.loads(self("model.pt", *words, "--json", status=status).stdout)
        return found

    def save(self, name: str, array: np.ndarray) -> str:
        np.save(self.folder / name, array)
        return name


@pytest.fixture(scope="module")
def runner(torch_install: TorchInstall, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("runner")
    (folder / "model.py").write_text(MODEL)  # TorchScript reads the source of a class, so it has to lie in a file
    subprocess.run([torch_install.python, "-W", "ignore", folder / "model.py", folder / "model.pt"], check=True)
    include = torch_install.package / "include"
    library = torch_install.package / "lib"
    subprocess.run(
        [
            *("g++", "-std=gnu++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{SUPPORT}"),
            *("-isystem", include, "-isystem", include / "torch/csrc/api/include"),
            *(SUPPORT / "run.cpp", SUPPORT / "missing.cpp", "-o", folder / "run"),
            *(f"-L{library}", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{library}"),
        ],
        check=True,
    )
    return Runner(folder / "run", folder)


def made_up(shape: Sequence[int], index: int = 0) -> np.ndarray:
    """The numbers that the help text tells of."""
    state, numbers = index, []
    for _ in range(int(np.prod(shape))):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers.append((state >> 40) / 2**24)
    return np.array(numbers, np.float32).reshape(shape)


def expected(times: int = 2) -> list[np.ndarray]:
    y = made_up((5, 4)) * np.float32(times)
    numbers = [np.array(times), np.array(float(times)), np.array(False)]
    return [y, y.T, y.argmax(1), *numbers, y[:, ::2].astype(np.complex64).conj()]


def test_outputs_are_flattened_written_and_compared(runner: Runner) -> None:
    names = [runner.save(f"expected{place}.npy", array) for place, array in enumerate(expected())]
    options = [word for name in names for word in ("--expect", name)]
    report = runner.json(*SHAPE, *options, "--output", "out.npy", "--repeat", "3", "--threads", "1")
    assert report["fine"] is True
    assert len(report["forward_ms"]) == 3  # type: ignore[arg-type]
    for place, array in enumerate(expected()):
        written = np.load(runner.folder / f"out.{place}.npy")
        assert written.dtype == array.dtype
        np.testing.assert_array_equal(written, array)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda y: y + np.float32(0.01), "DIFFERENT: largest difference 0.01"),
        (lambda y: y.T, "its shape is (5, 4), expected (4, 5)"),
        (lambda y: y.astype(np.int64), "its type is Float, expected Long"),
        (lambda y: y * np.float32(np.nan), "DIFFERENT: largest difference inf"),
    ],
)
def test_what_differs_is_said_and_counts(runner: Runner, change, said: str) -> None:
    name = runner.save("other.npy", change(expected()[0]))
    assert said in runner("model.pt", *SHAPE, "--expect", name, status=1).stdout


def test_the_tolerance_is_a_part_of_the_largest_value(runner: Runner) -> None:
    y = expected()[0]
    name = runner.save("near.npy", y + y.max() * np.float32(1e-3))
    runner("model.pt", *SHAPE, "--expect", name, "--tolerance", "1.1e-3")
    runner("model.pt", *SHAPE, "--expect", name, "--tolerance", "0.9e-3", status=1)


def test_integers_have_to_be_equal(runner: Runner) -> None:
    arrays = expected()
    arrays[2] = arrays[2] + 1
    options = [
        word for place, array in enumerate(arrays[:3]) for word in ("--expect", runner.save(f"e{place}.npy", array))
    ]
    runner("model.pt", *SHAPE, *options, "--tolerance", "1000", status=1)


@pytest.mark.parametrize("order", ["C", "F"])
def test_inputs_that_numpy_wrote(runner: Runner, order: str) -> None:
    given = runner.save("given.npy", np.array(made_up((5, 4)), order=order))
    runner("model.pt", "--input", given, "--value", "3", "--expect", runner.save("e.npy", expected(3)[0]))


def test_raw_inputs(runner: Runner) -> None:
    made_up((5, 4)).tofile(runner.folder / "given.bin")
    name = runner.save("e.npy", expected()[0])
    runner("model.pt", *SHAPE, "--input", "given.bin", "--expect", name)
    wrong = runner("model.pt", "--shape", "5,3", "--input", "given.bin", status=1)
    assert wrong.stderr == "error: given.bin: the file holds more numbers than its shape\n"
    assert "cut short" in runner("model.pt", "--shape", "5,5", "--input", "given.bin", status=1).stderr


@pytest.mark.parametrize("dtype", ["double", "float16", "int64", "int", "short", "int8", "uint8"])
def test_dtypes_and_other_methods(runner: Runner, dtype: str) -> None:
    numpy_name = {"double": "float64", "int": "int32", "short": "int16"}.get(dtype, dtype)
    runner("model.pt", "--method", "kind", "--dtype", dtype, "--shape", "3,3", "--output", "kind.npy")
    assert np.load(runner.folder / "kind.0.npy").dtype == numpy_name


def test_bfloat16_is_widened_for_numpy(runner: Runner) -> None:
    runner("model.pt", "--method", "wide", *SHAPE, "--output", "wide.npy")
    written = np.load(runner.folder / "wide.0.npy")
    assert written.dtype == np.float32
    np.testing.assert_allclose(written, made_up((5, 4)), rtol=2**-8)
    assert not np.array_equal(written, made_up((5, 4)))


def test_check_only_names_the_methods(runner: Runner) -> None:
    assert set(runner.json("--check-only")["methods"]) == {"forward", "kind", "wide"}  # type: ignore[call-overload]


def test_wrong_calls_say_what_pytorch_says_without_its_stack(runner: Runner) -> None:
    said = runner("model.pt", status=1).stderr
    assert "missing value for argument 'x'" in said
    assert "frame #" not in said


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("model.pt", "--shape", "5,x"),
        ("model.pt", "--shape", "-1"),
        ("model.pt", "--dtype", "nonsense", "--shape", "1"),
        ("model.pt", "--repeat", "0"),
        ("model.pt", "--tolerance", "nan"),
        ("model.pt", "--input", "given.bin"),
        ("model.pt", "other.pt"),
        ("model.pt", "--no-such-option"),
        ("model.pt", "--shape"),
    ],
)
def test_wrong_usage(runner: Runner, words: tuple[str, ...]) -> None:
    assert re.match(r"error: .+\ntry: .*run --help\n", runner(*words, status=2).stderr)


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"\x93NUMPY\x01\x00\xff\xff",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
        b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f4'}",
        b"\x93NUMPY\x01\x00\x3a\x00{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }\n",
        b"\x93NUMPY\x01\x00\x3d\x00{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -4)}\n",
        b"\x93NUMPY\x01\x00\x50\x00"
        + b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 9999999999)}".ljust(80),
        b"\x93NUMPY\x01\x00\x50\x00" + b"{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776,)}".ljust(80),
    ],
)
def test_hostile_inputs(runner: Runner, header: bytes) -> None:
    (runner.folder / "hostile.npy").write_bytes(header)
    said = runner("model.pt", "--input", "hostile.npy", status=1).stderr
    assert said.startswith("error: ")


def test_a_file_that_is_no_model(runner: Runner) -> None:
    assert runner("nowhere.pt", status=1).stderr == "error: nowhere.pt: No such file or directory\n"
    (runner.folder / "text.pt").write_text("no model")
    failed = runner("text.pt", "--json", status=1)
    assert json.loads(failed.stdout)["fine"] is False
    assert failed.stderr.startswith("error: ")
