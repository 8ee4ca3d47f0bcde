"""verify on real models: finds nothing where nothing is wrong, and everything that is made wrong on purpose."""

import shutil
import warnings
from collections import Counter

import pytest

from opsieve.code.elf import ElfFile
from opsieve.errors import InvalidFile, InvalidModel, MissingInstallation
from opsieve.installed import TorchInstall, find_torch
from opsieve.verify.child_process import Runtime
from opsieve.verify.inputs import InputsFromFile, InputsFromModel, InputsFromShapes, RandomTensor
from opsieve.verify.outcome import OutcomeKind, Verdict, compare
from opsieve.verify.processes import run_variations
from opsieve.verify.variation import PreparedInputs, variations
from opsieve.verify.verification import Effort, ModelUnderTest, verify
from tests.functional.verify.broken_torch import meddling_torch, torch_with_library

pytestmark = pytest.mark.torch
QUICK = Effort(calls=1, other_processors=False)
IMAGES = InputsFromShapes((RandomTensor((1, 3, 12, 12)),))


@pytest.fixture(scope="module")
def install():
    return find_torch()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """One small model with state, saved in all four formats."""
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = torch.nn.Conv2d(3, 4, 3)
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            return {"out": torch.relu(self.convolution(x)) + self.calls}, (self.calls.clone(), 5)

    folder = tmp_path_factory.mktemp("models")
    torch.manual_seed(0)
    net = Net().eval()
    scripted = torch.jit.script(net)
    scripted.save(folder / "net.pt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted._save_for_lite_interpreter(str(folder / "net.ptl"))
        scripted._save_for_lite_interpreter(str(folder / "net.ff"), _use_flatbuffer=True)
    torch.export.save(torch.export.export(net, (torch.randn(1, 3, 12, 12),)), folder / "net.pt2")
    torch.save([torch.randn(1, 3, 12, 12), (torch.randn(2, 3, 9, 9),)], folder / "inputs.pt")
    return folder


def check(path, install, slim, inputs=IMAGES, effort=QUICK):
    return verify([ModelUnderTest(path, inputs)], stock=install, slim=slim, effort=effort)


def by_inputs(report):
    """{label of the inputs: the verdicts found}"""
    found = {}
    for comparison in report.comparisons:
        found.setdefault(comparison.variation.inputs.label, set()).add(comparison.verdict)
    return found


@pytest.mark.parametrize("name", ["net.pt", "net.ptl", "net.ff"])
def test_stock_is_identical_to_itself_in_results_and_errors(models, install, name):
    report = check(models / name, install, install)
    assert report.identical
    assert report.stock_version == report.slim_version == install.version
    kinds = Counter(comparison.stock.kind for comparison in report.comparisons)
    assert kinds[OutcomeKind.RESULTS] > 15
    assert kinds[OutcomeKind.ERROR] > 10
    assert kinds[OutcomeKind.CRASH] == 0
    stages = {c.stock.stage for c in report.comparisons if c.stock.kind is OutcomeKind.ERROR}
    assert stages == {"call 1"}, "errors must come from the model, not from our loading or looking"
    labels = set(by_inputs(report))
    assert {"as given", "batch 3", "channels_last", "not contiguous", "4 channels", "dtype float64"} <= labels


def test_exported_models_bring_their_own_inputs(models, install):
    report = check(models / "net.pt2", install, install, InputsFromModel())
    assert report.identical
    assert {c.stock.kind for c in report.comparisons if c.variation.inputs.plain} == {OutcomeKind.RESULTS}


def test_a_file_may_hold_several_inputs_and_state_carries_over_calls_but_not_variations(models, install):
    report = check(models / "net.pt", install, install, InputsFromFile(models / "inputs.pt"), Effort(calls=2))
    assert report.identical
    assert {"as given (input 1)", "as given (input 2)", "all inputs, one after the other"} <= set(by_inputs(report))
    state = [
        [leaf.digest for call in c.stock.calls for leaf in call if leaf.at == "[1][0]"]
        for c in report.comparisons
        if c.stock.kind is OutcomeKind.RESULTS
    ]
    assert len(state) > 10
    assert all(first != second for first, second in state), "the second call sees the state of the first"
    assert len({tuple(digests) for digests in state}) == 1, "each variation begins with a fresh model"


LEFT_OUT = "aten::add is not in this build, which opsieve made: --op aten::add"
FAULTS = {
    "batch 3": ("return {'out': result[0]['out'] + 1e-6}, result[1]", Verdict.DIFFERENT, "['out'] (float32"),
    "batch 8": ("return result[0], result[1][:1]", Verdict.DIFFERENT, "another structure"),
    "batch 0": ("return {'out': result[0]['out'].double()}, result[1]", Verdict.DIFFERENT, "float64"),
    "shape 1×3×9×9": ("return {'out': result[0]['out'].mT.contiguous().mT}, result[1]", Verdict.DIFFERENT, "strides"),
    "shape 1×3×13×13": ("raise ValueError('out of order')", Verdict.DIFFERENT, "ValueError: out of order"),
    "shape 1×3×7×7": (f"raise RuntimeError('{LEFT_OUT}')", Verdict.LEFT_OUT, "--op aten::add"),
    "one dimension less": ("import ctypes; ctypes.string_at(0)", Verdict.CRASHED, "signal SIGSEGV"),
    "not a number": (
        "import os; os.write(2, b'\\nopsieve: libtorch_cpu.so: gone\\n'); os._exit(86)",
        Verdict.CRASHED,
        "exit status 86: opsieve: libtorch_cpu.so: gone",
    ),
}
INPUTS = {
    "batch 3": (3, 3, 12, 12),
    "batch 8": (8, 3, 12, 12),
    "batch 0": (0, 3, 12, 12),
    "shape 1×3×9×9": (1, 3, 9, 9),
    "shape 1×3×13×13": (1, 3, 13, 13),
    "shape 1×3×7×7": (1, 3, 7, 7),
    "one dimension less": (3, 12, 12),
}


def test_each_kind_of_fault_is_found_just_where_it_is(models, install, tmp_path):
    lines = ["shape = tuple(inputs[0].shape) if inputs else ()"]
    for label, (body, _, _) in FAULTS.items():
        lines.append(f"if shape == {INPUTS[label]}:" if label in INPUTS else "if inputs and inputs[0].isnan().all():")
        # An empty input is "not a number" throughout, so its own rule stands first.
        lines.append(f"    {body}")
    lines.append("return result")
    report = check(models / "net.pt", install, meddling_torch(install, tmp_path / "site", "\n".join(lines)))
    assert not report.identical
    found = by_inputs(report)
    for label, (_, verdict, told) in FAULTS.items():
        assert found.pop(label) == {verdict}, label
        reasons = [c.reason for c in report.comparisons if c.variation.inputs.label == label]
        assert len(reasons) == 2
        assert all(told in reason for reason in reasons), label
    assert set().union(*found.values()) == {Verdict.IDENTICAL}, "a fault must not cost the other variations"


def test_another_error_text_is_found(models, install, tmp_path):
    site = meddling_torch(install, tmp_path / "site", "raise AssertionError")
    init = tmp_path / "site/torch_init.py"
    init.write_text(
        init.read_text().replace(
            "return _meddle(inputs, model(*inputs))",
            "\n                try:\n                    return model(*inputs)"
            "\n                except RuntimeError as error:\n                    raise RuntimeError(f'{error}!')",
        )
    )
    report = check(models / "net.pt", install, site)
    different = [c for c in report.comparisons if c.verdict is Verdict.DIFFERENT]
    assert different
    assert all(c.stock.kind is c.slim.kind is OutcomeKind.ERROR for c in different)
    assert all(c.slim.text == f"{c.stock.text}!" for c in different)
    assert {c.verdict for c in report.comparisons if c.stock.kind is OutcomeKind.RESULTS} == {Verdict.IDENTICAL}


def test_results_that_stock_does_not_repeat_are_not_held_against_slim(models, install, tmp_path, monkeypatch):
    body = "import os, struct\nreturn struct.unpack('<I', os.urandom(4))[0] * result[0]['out']"
    random = meddling_torch(install, tmp_path / "site", body)
    # The same package stands for both: PYTHONPATH makes it the stock one too.
    monkeypatch.setenv("PYTHONPATH", str(random.site))
    report = check(models / "net.pt", random, random)
    assert report.identical
    found = by_inputs(report)
    assert found["as given"] == found["batch 3"] == {Verdict.UNSTABLE}
    assert found["batch 0"] == found["4 channels"] == {Verdict.IDENTICAL}, "nothing random in these"


def test_a_patched_library_is_found(models, install, tmp_path):
    """One byte at the start of a kernel that every call of the model needs."""
    import torch

    library = tmp_path / "libtorch_cpu.so"
    shutil.copyfile(install.library(library.name), library)
    elf = ElfFile(library)
    symbols = elf.dynamic_symbols
    wanted = b"_ZN2at6native4reluERKNS_6TensorE"
    address = next(int(symbol["value"]) for symbol in symbols if elf.name(".dynstr", int(symbol["name"])) == wanted)
    with library.open("r+b") as file:
        file.seek(address)  # the first segment of this library begins at 0 in file and memory
        file.write(bytes([0xCC]))
    patched = torch_with_library(install, tmp_path / "site", library.name, library)
    torch.save([((torch.ones(1, 3, 12, 12),), {}), ((torch.ones(1, 2),), {})], tmp_path / "0.pt")
    prepared = [PreparedInputs("as given", str(tmp_path / "0.pt"), False)]
    tried = list(variations(models / "net.ptl", "lite", "forward", prepared, thorough=False))
    runtimes = Runtime(install.python, install.package), Runtime(patched.python, patched.package, on_path=True)
    stock, slim = (run_variations(r, tried, seconds=600, finished=lambda amount: None) for r in runtimes)
    assert [len(stock[number].calls) for number in (0, 1)] == [1, 1]
    assert [(slim[number].kind, slim[number].error) for number in (0, 1)] == [
        (OutcomeKind.CRASH, "signal SIGTRAP"),
        (OutcomeKind.CRASH, "signal SIGTRAP"),
    ]
    assert compare(stock[0], slim[0])[0] is Verdict.CRASHED


def test_unusable_models_and_inputs_are_told_before_anything_runs(models, install, tmp_path):
    with pytest.raises(InvalidFile, match="no example inputs"):
        check(models / "net.pt", install, install, InputsFromModel())
    (tmp_path / "evil.pt").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    with pytest.raises(InvalidFile, match="cannot be used"):
        check(models / "net.pt", install, install, InputsFromFile(tmp_path / "evil.pt"))
    with pytest.raises(InvalidModel):
        check(tmp_path / "evil.pt", install, install)


def test_the_runtimes_must_be_what_their_names_say(models, install, tmp_path):
    nothing = TorchInstall(install.python, tmp_path / "torch", install.version)
    with pytest.raises(MissingInstallation, match="another PyTorch is imported"):
        check(models / "net.pt", install, nothing)
    slim = TorchInstall(install.python, install.package, "2.13.0+cpu.opsieve.h1")
    with pytest.raises(MissingInstallation, match="itself a slim one"):
        check(models / "net.pt", slim, install)
