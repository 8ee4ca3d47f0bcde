"""What a model demands of a runtime beside operators: a version of its format, and dtypes of its weights."""

from __future__ import annotations

import mmap
import re
from dataclasses import dataclass
from pathlib import Path

from opsieve.models.archive import ModelArchive, open_archive
from opsieve.models.detect import Format, archive_format, container_format
from opsieve.models.flatbuffer import bytecode_version
from opsieve.models.lite import BYTECODE
from opsieve.models.pickles import read_pickle
from opsieve.models.tables import Buffer

_STORAGE = re.compile(rb"ctorch\n([A-Z]\w*)Storage\n")
_PICKLES = ("data.pkl", "constants.pkl", BYTECODE)


@dataclass(frozen=True, slots=True)
class ModelDemands:
    """Versions, and dtypes by their names in c10::ScalarType; None and empty for what the format does not say."""

    bytecode: int | None = None
    """Of the lite interpreter's functions: kMinSupportedBytecodeVersion of caffe2/serialize/versions.h and on."""

    file_format: int | None = None
    """Of a TorchScript archive: kMinSupportedFileFormatVersion and on."""

    dtypes: frozenset[str] = frozenset()
    """Of the weights and constants."""


def read_demands(path: Path) -> ModelDemands:
    """The demands of the model at `path`. No weight is read. Raises InvalidModel when the file is broken."""
    if container_format(path) is Format.LITE_FLATBUFFER:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return ModelDemands(bytecode=bytecode_version(Buffer(data, str(path))))
    with open_archive(path) as archive:
        pickles = {name: archive.read(name) for name in _PICKLES if name in archive}
        names = {name.decode() for content in pickles.values() for name in _STORAGE.findall(content)}
        if archive_format(archive) is Format.LITE:
            return ModelDemands(_version(archive, pickles[BYTECODE]), None, frozenset(names))
        return ModelDemands(None, archive.file_version(), frozenset(names))


def _version(archive: ModelArchive, bytecode: bytes) -> int | None:
    content = read_pickle(bytecode, f"{archive.path}: {BYTECODE}")
    first = content[0] if isinstance(content, (tuple, list)) and content else None
    return first if type(first) is int else None
