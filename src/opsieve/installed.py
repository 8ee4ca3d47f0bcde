"""The PyTorch that is installed: found without importing it, and run only in child processes."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsieve.errors import MissingInstallation, OpsieveError

_FIND = (
    "import importlib.util as u; s = u.find_spec('torch'); "
    "print((s.submodule_search_locations or [''])[0] if s else '')"
)


@dataclass(frozen=True, slots=True)
class TorchInstall:
    """One installed torch: the interpreter that uses it, its package folder and its version."""

    python: Path
    package: Path
    version: str

    @property
    def site(self) -> Path:
        """The site-packages folder that holds `torch`."""
        return self.package.parent

    def library(self, name: str) -> Path:
        """The path of one of its shared libraries, such as `libtorch_cpu.so`."""
        return self.package / "lib" / name


def find_torch(python: Path | None = None) -> TorchInstall:
    """The torch of `python`, by default of the running interpreter. Does not import it.

    Raises MissingInstallation when there is none.
    """
    package = _package_folder(python)
    if package is None or not (package / "version.py").is_file():
        raise MissingInstallation(
            "PyTorch is not installed for this interpreter",
            where=python or sys.executable,
            remedy="pip install torch==2.13.0 (the CPU build), or name another interpreter with --python",
        )
    return install_at(package, python)


def install_at(package: Path, python: Path | None = None) -> TorchInstall:
    """The installation whose package folder is `package`; `python` is what can import it."""
    return TorchInstall(python or Path(sys.executable), package, _version(package / "version.py"))


def _package_folder(python: Path | None) -> Path | None:
    if python is None:
        spec = importlib.util.find_spec("torch")
        found = (spec.submodule_search_locations or [""])[0] if spec else ""
    else:
        try:
            found = subprocess.run([python, "-c", _FIND], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise MissingInstallation("this is no Python interpreter", where=python) from error
    return Path(found.strip()) if found.strip() else None


def _version(version_file: Path) -> str:
    match = re.search(r"__version__\s*=\s*['\"]([^'\"]+)['\"]", version_file.read_text())
    if match is None:
        raise MissingInstallation("cannot read the version of PyTorch", where=version_file)
    return match.group(1)


class ChildFailed(OpsieveError):
    """A child process with torch ended badly. `stderr` holds the end of what it said."""

    def __init__(self, script: Path, returncode: int, stderr: str) -> None:
        super().__init__(f"the helper process {script.name} failed with status {returncode}: {stderr.strip()[-400:]}")
        self.returncode = returncode
        self.stderr = stderr


def run_child(
    python: Path,
    script: Path,
    request: object,
    *,
    environment: dict[str, str] | None = None,
    timeout: float | None = None,
) -> Any:  # noqa: ANN401 (JSON has no narrower type; callers convert it)
    """Run `script` with `python`, `request` as JSON on its standard input; return the JSON it prints.

    The child is isolated from the user's folder (`-P`) but keeps PYTHONPATH, so that a slim torch can be chosen.
    Raises ChildFailed when the child ends badly, prints no JSON, or takes longer than `timeout` seconds.
    """
    variables = {**os.environ, **(environment or {})}
    try:
        done = subprocess.run(
            [python, "-P", script],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env=variables,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ChildFailed(script, -1, f"no answer within {timeout} seconds") from error
    if done.returncode != 0:
        raise ChildFailed(script, done.returncode, done.stderr)
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        raise ChildFailed(script, 0, done.stdout[-200:] + done.stderr) from error
