"""The package around the libraries, with the stock libraries in it: everything but the operators is as stock."""

import csv
import hashlib
import json
import os
import subprocess
import sys
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from opsieve.installed import find_torch
from opsieve.runtimes.wheel.package import assemble

pytestmark = pytest.mark.torch
SCRIPT = Path(__file__).parent / "use_package.py"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return assemble(find_torch(), {}, tmp_path_factory.mktemp("package"))


@pytest.fixture(scope="module")
def installed_by_pip(report, tmp_path_factory):
    target = tmp_path_factory.mktemp("pip")
    options = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", target, report.wheel]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return target


def run(script, package, *arguments, cache=None):
    variables = {**os.environ, "PYTHONPATH": str(package), "TORCHINDUCTOR_CACHE_DIR": str(cache or "")}
    done = subprocess.run(
        [sys.executable, "-P", script, *arguments], capture_output=True, text=True, env=variables, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_everything_but_operators_works_from_the_folder(report, tmp_path):
    used = run(SCRIPT, report.folder, tmp_path, cache=tmp_path / "inductor")
    assert all(Path(file).is_relative_to(report.folder) for file in used["packages"])
    assert used["versions"] == [report.version] * 3
    assert used["newer_than_2_12"]
    assert used["equal"] == dict.fromkeys(["torchscript", "lite", "export", "state", "compile"], True)
    assert used["shared"] == [[3.0, 760.0], [3.0, 760.0]]
    # Compiling C++ needs the headers that were left out; the error must name them, not crash.
    assert "torch/csrc/inductor/cpp_prefix.h" in used["inductor_error"]


def test_pip_installs_the_wheel_with_the_right_version_and_scripts(report, installed_by_pip):
    info = installed_by_pip / f"torch-{report.version}.dist-info"
    assert (info / "RECORD").is_file()
    assert (installed_by_pip / "bin/torchrun").is_file()
    assert os.access(installed_by_pip / "torch/bin/torch_shm_manager", os.X_OK)


def test_pip_finds_every_hash_right(report, installed_by_pip):
    info = installed_by_pip / f"torch-{report.version}.dist-info"
    checked = 0
    with (info / "RECORD").open(newline="") as file:
        for path, digest, size in csv.reader(file):
            if digest and not path.startswith(".."):
                content = (installed_by_pip / path).read_bytes()
                encoded = urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                assert (digest, int(size)) == (f"sha256={encoded}", len(content)), path
                checked += 1
    assert checked > 2000


def test_what_pip_installed_imports(report, installed_by_pip, tmp_path):
    script = tmp_path / "version.py"
    script.write_text(
        "import json, torch; print(json.dumps([torch.__file__, torch.__version__, torch.ones(2).sum().item()]))"
    )
    file, version, total = run(script, installed_by_pip)
    assert Path(file).is_relative_to(installed_by_pip)
    assert (version, total) == (report.version, 2.0)


def test_what_is_left_out_is_more_than_180_mb(report):
    dropped = sum(file.size for file in report.dropped)
    assert report.stock_bytes - report.kept_bytes == pytest.approx(dropped, abs=1_500_000)
    assert dropped > 180_000_000
