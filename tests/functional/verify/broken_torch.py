"""Packages that stand for a slim PyTorch with a fault, without cutting anything."""

from pathlib import Path

from opsieve.installed import TorchInstall, install_at
from opsieve.verify.mirror import mirror_package

# Appended to torch/__init__.py: every loaded TorchScript model goes through `_meddle(inputs, result)`.
_MEDDLE = """

def _wrap(load):
    def loaded(*arguments, **named):
        model = load(*arguments, **named)

        class Meddled:
            def eval(self):
                model.eval()
                return self

            def __call__(self, *inputs):
                return _meddle(inputs, model(*inputs))

        return Meddled()

    return loaded


jit.load = _wrap(jit.load)


def _meddle(inputs, result):
"""


def meddling_torch(install: TorchInstall, site: Path, body: str) -> TorchInstall:
    """The stock torch, but what TorchScript models return goes through the Python function body `body`."""
    site.mkdir(parents=True)
    init = site / "torch_init.py"
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    init.write_text((install.package / "__init__.py").read_text() + _MEDDLE + lines)
    return install_at(mirror_package(install.package, site, {"__init__.py": init}), install.python)


def torch_with_library(install: TorchInstall, site: Path, name: str, library: Path) -> TorchInstall:
    """The stock torch with another library."""
    return install_at(mirror_package(install.package, site, {f"lib/{name}": library}), install.python)
