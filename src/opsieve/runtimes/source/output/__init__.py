"""The folder that a build from source leaves: program, library, headers, CMake package, and what describes them."""

from opsieve.runtimes.source.output.folder import write_folder
from opsieve.runtimes.source.output.parts import RuntimeParts
from opsieve.runtimes.source.output.sizes import LinkAccount, SizeRow

__all__ = ["LinkAccount", "RuntimeParts", "SizeRow", "write_folder"]
