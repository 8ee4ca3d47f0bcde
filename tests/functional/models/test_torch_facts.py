"""The facts of PyTorch in the package are those of the torch that is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from opsieve.models import torch_facts
from opsieve.operators import OperatorName

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[3]


def test_the_committed_facts_are_what_the_script_writes() -> None:
    script = ROOT / "scripts" / "write_torch_facts.py"
    written = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True).stdout
    assert written == Path(torch_facts.__file__).with_name("torch_facts.json").read_text()


def test_every_operator_of_pytorch_has_a_name_that_we_can_read() -> None:
    names = {str(name) for name in torch._C._dispatch_get_all_op_names()}
    names |= {s.name + (f".{s.overload_name}" if s.overload_name else "") for s in torch._C._jit_get_all_schemas()}
    assert len(names) > 4000
    assert {str(OperatorName.parse(name)) for name in names} == names
