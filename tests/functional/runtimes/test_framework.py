"""What every program does with PyTorch works in a slim runtime, whatever model it was made for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opsieve.installed import TorchInstall
from opsieve.runtimes.wheel.build import BuildRequest, build, plan_build
from tests.functional.runtimes.conftest import Built
from tests.functional.runtimes.test_slim_models import run

pytestmark = pytest.mark.torch

ACTIVITIES = """
import copy, io, sys
import numpy, torch

x = torch.tensor([[1.5, -2.0], [3.0, 4.25]])
file = io.BytesIO()
torch.save({"x": x, "p": torch.nn.Parameter(x)}, file)
for weights_only in (True, False):
    file.seek(0)
    loaded = torch.load(file, weights_only=weights_only)
    assert torch.equal(loaded["x"], x)
for shown in (x, x * 1e9, x.bool(), x.long(), x.bfloat16(), x.double(), torch.zeros(40, 50), loaded["p"]):
    print(shown)
print(torch.from_numpy(numpy.arange(6.0).reshape(2, 3)), torch.ones(2).numpy(), torch.full((2,), 7), torch.empty(0))
print(x.to(torch.float16), x.half().float(), x.cpu().contiguous().clone().detach().requires_grad_())
print(x[0], x[1:], x[:, None].shape, x[..., 0], x[0, 0].item(), float(x[0, 1]), bool(x[0, 0]), list(x), len(x))
print(copy.deepcopy(x), x.tolist(), torch.as_tensor([1, 2]), torch.tensor(True), x.shape, x.stride())
module = torch.jit.load(sys.argv[1])
module.load_state_dict(module.state_dict())
print(len(list(module.eval().parameters())), module.to(torch.float64).state_dict().keys())
"""


def test_everyday_activities(built: Callable[[str], Built], install: TorchInstall, tmp_path: Path) -> None:
    program, model = tmp_path / "activities.py", built("recurrent").model
    program.write_text(ACTIVITIES)
    # No model and no option: what is left is what PyTorch itself needs.
    report = build(plan_build(install, BuildRequest([], wheel=False)), tmp_path / "slim")
    assert run(install.python, program, model, site=report.package.folder) == run(install.python, program, model)
