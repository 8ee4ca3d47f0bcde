"""Reading with a limit on memory: weights take none, and files made to fill it are refused."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.unit.models.files import script_members, write

WITHOUT_WEIGHTS = 96 << 20
ANY_FILE = 1200 << 20

READ = """
import resource, sys
from pathlib import Path
from opsieve.errors import InvalidModel
from opsieve.models import read_model
limit = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
try:
    sys.stdout.write(read_model(Path(sys.argv[1])).format)
except InvalidModel as error:
    sys.stdout.write(error.problem)
"""


def read_with(memory: int, path: Path) -> str:
    """What the reader says in a process with `memory` bytes of data; a MemoryError there fails the test."""
    command = [sys.executable, "-c", READ, str(path), str(memory)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_weights_larger_than_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", {**script_members(), "data/0": bytes(2 * WITHOUT_WEIGHTS)})
    assert read_with(WITHOUT_WEIGHTS, path) == "torchscript"


@pytest.mark.parametrize(
    ("member", "content", "reason"),
    [
        ("bytecode.pkl", b"\x80\x02" + b"]" * (60 << 20), "opcodes"),
        ("bytecode.pkl", b"\x80\x02]q\x00" + b"h\x00" * (30 << 20), "opcodes"),
        ("bytecode.pkl", b"\x80\x02(" + b")\x81" * (30 << 20), "the stack is empty"),
        ("bytecode.pkl", b"(" * (100 << 20), "bytes"),
        ("models/model.json", b"[" * (100 << 20), "no exported program"),
        (
            "models/model.json",
            b'{"graph_module":{"graph":{"nodes":[' + b'{"target":"","inputs":[]},' * (4 << 20),
            "no exported",
        ),
        ("code/__torch__.py", b"def f() -> int:\n  return [" + b"int(x)," * (15 << 20), "more than"),
        ("code/__torch__.py", b"def f() -> int:\n  return " + b"(" * (100 << 20), "brackets are open"),
    ],
)
def test_files_made_to_fill_the_memory(tmp_path: Path, member: str, content: bytes, reason: str) -> None:
    path = tmp_path / "m"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {**script_members(), member: content}.items():
            archive.writestr(f"m/{name}", data)
    assert path.stat().st_size < 1 << 20
    assert reason in read_with(ANY_FILE, path)
