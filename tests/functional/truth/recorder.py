"""The dispatch recorder (recorder.cpp): compiling it, and using it in a process that has torch loaded."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

from opsieve.installed import TorchInstall

_SOURCE = Path(__file__).with_name("recorder.cpp")
# NDEBUG: at::RecordFunction has one member more without it, and the wheel is built with it.
_OPTIONS = ("-std=c++20", "-O1", "-DNDEBUG", "-fPIC", "-shared", "-fno-access-control")


def compile_recorder(install: TorchInstall, folder: Path) -> Path:
    """Compile the recorder for `install` into `folder` (7 s, 600 MB). Needs g++."""
    include = install.package / "include"
    library = folder / "recorder.so"
    command = ["g++", *_OPTIONS, f"-I{include}", f"-I{include / 'torch/csrc/api/include'}", str(_SOURCE)]
    link = [f"-L{install.library('')}", "-ltorch_cpu", "-lc10", "-o", str(library)]
    done = subprocess.run([*command, *link], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"g++ cannot compile {_SOURCE.name}:\n{done.stderr[-3000:]}")
    return library


class Recorder:
    """Records the dispatches of this process between `start` and `stop`; torch must be imported already."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self._library.recorder_flush.restype = ctypes.c_long

    def start(self) -> None:
        """Begin; the calling thread is the one for which pool threads are taken to work."""
        self._library.recorder_start()

    def stop(self) -> None:
        """End; what was recorded stays until `flush`."""
        self._library.recorder_stop()

    def flush(self, file: Path) -> None:
        """Append what was recorded to `file` and forget it. Raises RuntimeError if any call escaped."""
        lost = self._library.recorder_flush(str(file).encode())
        if lost != 0:
            raise RuntimeError(f"{lost} calls could not be recorded" if lost > 0 else f"cannot write {file}")
