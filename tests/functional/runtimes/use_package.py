"""Run by test_package.py with the package under test on PYTHONPATH: says in JSON what it did."""

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import functorch
import torch
import torch.distributed.fsdp
import torch.multiprocessing as multiprocessing
import torch.utils.checkpoint
import torchgen
from torch.jit.mobile import _load_for_lite_interpreter


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 3)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        return torch.full((4,), float(index))


def send_ones(queue, received):
    queue.put(torch.ones(3))
    received.wait()  # the tensor lives in this process until the other side has mapped it


def shared_through(strategy):
    multiprocessing.set_sharing_strategy(strategy)
    context = multiprocessing.get_context("spawn")
    queue, received = context.Queue(), context.Event()
    process = context.Process(target=send_ones, args=(queue, received))
    process.start()
    total = queue.get().sum().item()
    received.set()
    process.join()
    batches = torch.utils.data.DataLoader(Numbers(), batch_size=4, num_workers=2)
    return total, sum(batch.sum().item() for batch in batches)


def saved_and_loaded(model, x, folder):
    torch.jit.script(model).save(folder / "m.pt")
    torch.jit.script(model)._save_for_lite_interpreter(str(folder / "m.ptl"))
    torch.export.save(torch.export.export(model, (x,)), folder / "m.pt2")
    torch.save(model.state_dict(), folder / "m.pth")
    again = Net()
    again.load_state_dict(torch.load(folder / "m.pth"))
    return {
        "torchscript": torch.jit.load(folder / "m.pt")(x),
        "lite": _load_for_lite_interpreter(str(folder / "m.ptl"))(x),
        "export": torch.export.load(folder / "m.pt2").module()(x),
        "state": again(x),
        "compile": torch.compile(model, backend="eager")(x),
    }


def inductor_error(model, x):
    try:
        torch.compile(model)(x)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def main():
    warnings.simplefilter("ignore")
    model, x = Net().eval(), torch.randn(2, 4)
    expected = model(x)
    outputs = saved_and_loaded(model, x, Path(sys.argv[1]))
    report = {
        "packages": [torch.__file__, torchgen.__file__, functorch.__file__],
        "versions": [str(torch.__version__), torch.version.__version__, version("torch")],
        "newer_than_2_12": torch.__version__ > (2, 12) and torch.__version__ >= "2.13",
        "equal": {name: torch.equal(output, expected) for name, output in outputs.items()},
        "shared": [shared_through(strategy) for strategy in ("file_descriptor", "file_system")],
        "inductor_error": inductor_error(model, x),
    }
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
