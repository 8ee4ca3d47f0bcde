"""A site-packages folder with a torch that has one file for every rule, installed as pip would."""

from __future__ import annotations

import sys
from pathlib import Path

from opsieve.installed import TorchInstall

VERSION_PY = "from typing import Optional\n\n__all__ = ['__version__']\n__version__ = '2.13.0+cpu'\ndebug = False\n"
METADATA = "Metadata-Version: 2.4\nName: torch\nVersion: 2.13.0+cpu\nSummary: x\n\nVersion: of the description\n"
WHEEL = (
    "Wheel-Version: 1.0\nGenerator: setuptools (81.0.0)\nRoot-Is-Purelib: false\n"
    "Tag: cp311-cp311-manylinux_2_28_x86_64\n\n"
)
KEPT = {
    "functorch/__init__.py": "import torch\n",
    "torch/__init__.py": "from torch.version import __version__\n",
    "torch/bin/torch_shm_manager": "\x7fELF manager",
    "torch/lib/libtorch_cpu.so": "\x7fELF" + "operators " * 500,
    "torch/testing/__init__.py": "",
    "torch/version.py": VERSION_PY,
    "torchgen/packaged/ATen/native/native_functions.yaml": "- func: x\n",
}
DROPPED = {
    "torch/_C/__init__.pyi": "class Tensor: ...\n",
    "torch/bin/protoc": "compiler",
    "torch/bin/test_api": "tests",
    "torch/lib/libtorchbind_test.so": "\x7fELF test",
    "torch/test/wrapdim_test": "tests",
}
FOR_BUILDING = {
    "torch/include/ATen/ATen.h": "#pragma once\n",
    "torch/share/cmake/Torch/TorchConfig.cmake": "set(x)\n",
}
BYTECODE = "torch/__pycache__/__init__.cpython-311.pyc"
DIST_INFO = "torch-2.13.0+cpu.dist-info"


def install_fake_torch(site: Path) -> TorchInstall:
    """Write the package, its metadata and its RECORD (a console script and bytecode in it) below `site`."""
    metadata = {"METADATA": METADATA, "WHEEL": WHEEL, "licenses/LICENSE": "free\n", "INSTALLER": "pip\n"}
    files = {**KEPT, **DROPPED, **FOR_BUILDING, BYTECODE: "bytecode"}
    files |= {f"{DIST_INFO}/{name}": text for name, text in metadata.items()}
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    (site / "torch/bin/torch_shm_manager").chmod(0o755)
    lines = ["../../../bin/torchrun,sha256=x,223", *(f"{path},," for path in files), f"{DIST_INFO}/RECORD,,"]
    (site / DIST_INFO / "RECORD").write_text("\n".join(lines) + "\n")
    return TorchInstall(Path(sys.executable), site / "torch", "2.13.0+cpu")
