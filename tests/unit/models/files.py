"""Model files for tests: the small real ones, and archives made by hand."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "models"
EVERYTHING = DATA / "everything.pt"
LITE = DATA / "lite.ptl"
LITE_FLATBUFFER = DATA / "lite.ff"
BRANCHES = DATA / "branches.pt2"
WEIGHTS = DATA / "weights.pt"
MODELS = (EVERYTHING, LITE, LITE_FLATBUFFER, BRANCHES)

TINY_CODE = """\
class Net(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool
  def forward(self: __torch__.Net,
    x: Tensor) -> Tensor:
    return torch.relu(x)
"""


def zipped(members: Mapping[str, bytes | str], top: str = "model/") -> bytes:
    """A zip archive of `members`, all below the folder `top`."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(top + name), data)
    return content.getvalue()


def write(path: Path, members: Mapping[str, bytes | str], top: str = "model/") -> Path:
    """Write such an archive to `path`."""
    path.write_bytes(zipped(members, top))
    return path


def script_members(code: str = TINY_CODE, version: int = 10) -> dict[str, bytes | str]:
    """The members of a TorchScript archive with `code` as `__torch__.py`."""
    return {
        "code/__torch__.py": code,
        "data.pkl": b"\x80\x02N.",
        "constants.pkl": b"\x80\x02).",
        "version": str(version),
    }


def unzipped(path: Path) -> dict[str, bytes]:
    """The members of an archive without its top folder."""
    with zipfile.ZipFile(path) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
