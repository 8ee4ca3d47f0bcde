"""What is added to messages of PyTorch's that tell of something a runtime leaves out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opsieve.installed import TorchInstall
from opsieve.runtimes.source.workspace import SUPPORT

pytestmark = pytest.mark.torch

PROGRAM = """
#include <opsieve/explain.h>
#include <c10/util/Exception.h>
#include <iostream>
#include <iterator>
int main() {
  const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
  try {
    TORCH_CHECK(false, text);
  } catch (const std::exception& error) {
    const std::string once = opsieve::explain(error);
    std::cout << once << (opsieve::explained(once) == once ? "" : "TWICE");
  }
}
"""
LEFT_OUT = "\nthis runtime was made by opsieve and holds only what its models need; left out: "


@pytest.fixture(scope="module")
def explain(torch_install: TorchInstall, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """What is added to a message."""
    folder: Path = tmp_path_factory.mktemp("missing")
    (folder / "main.cpp").write_text(PROGRAM)
    library = torch_install.package / "lib"
    command = ["g++", "-std=gnu++20", "-O0", "-Wall", "-Wextra", "-Werror", f"-I{SUPPORT}"]
    command += ["-isystem", str(torch_install.package / "include"), "main.cpp", str(SUPPORT / "missing.cpp")]
    subprocess.run([*command, f"-L{library}", "-lc10", f"-Wl,-rpath,{library}"], cwd=folder, check=True)

    def run(message: str) -> str:
        done = subprocess.run([folder / "a.out"], input=message, capture_output=True, text=True, check=True)
        assert done.stdout.startswith(message), "nothing that PyTorch says is lost, and no stack is added"
        return done.stdout.removeprefix(message)

    return run


@pytest.mark.parametrize(
    ("message", "operators"),
    [
        ("Following ops cannot be found: [aten::a, aten::b.out]. Please check", ["aten::a", "aten::b.out"]),
        ("Could not find schema for aten::x.", ["aten::x"]),
        ("Could not find schema for aten::x.out but we found an implementation", ["aten::x.out"]),
        ("Could not run 'aten::x.out' with arguments from the 'CPU' backend. This", ["aten::x.out"]),
        (
            "There were no tensor arguments, but no fallback function is registered for schema aten::x.  Usually",
            ["aten::x"],
        ),
        ("\nUnknown builtin op: my::foo.\nCould not find any similar ops", ["my::foo"]),
        ("Couldn't find an operator for aten::x(Tensor a) -> Tensor. Do you", ["aten::x"]),
    ],
)
def test_operators(explain: Callable[[str], str], message: str, operators: list[str]) -> None:
    options = " ".join(f"--op {name}" for name in operators)
    assert explain(message) == (
        f"{LEFT_OUT}{', '.join(operators)}\nto add: name this model too, or give {options} to opsieve build"
    )


@pytest.mark.parametrize(
    "message",
    [
        "The implementation of class __torch__.torch.classes.my.Class cannot be found.",
        "\nUnknown type name '__torch__.torch.classes.my.Class':\n  File",
    ],
)
def test_custom_classes(explain: Callable[[str], str], message: str) -> None:
    assert explain(message).startswith(f"{LEFT_OUT}the class torch.classes.my.Class\n")


def test_dtypes(explain: Callable[[str], str]) -> None:
    said = explain("dtype 'Half' not selected for kernel tag add_stub")
    assert "left out: Half of add_stub\n" in said
    assert "--dtypes" in said


@pytest.mark.parametrize(
    "message",
    [
        "",
        "shape '[1, 2]' is invalid for input of size 3",
        "Following ops cannot be found: []",
        "Could not run 'it' today",
        "Unknown type name 'Foo'",
        "Expected dtype 'Float'",
        "Following ops cannot be found: [",
        "Could not find schema for ",
    ],
)
def test_other_messages_stay_as_they_are(explain: Callable[[str], str], message: str) -> None:
    assert explain(message) == ""
