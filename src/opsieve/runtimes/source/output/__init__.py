"""The folder that a build from source leaves: program, library, headers, CMake package, and what describes them."""

from opsieve.runtimes.source.output.folder import write_folder
from opsieve.runtimes.source.output.parts import RuntimeParts
from opsieve.runtimes.source.output.sizes import SizeRow, SizeTables

__all__ = ["RuntimeParts", "SizeRow", "SizeTables", "write_folder"]
