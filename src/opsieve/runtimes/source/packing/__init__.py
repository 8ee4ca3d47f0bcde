"""One file that holds a prepared archive and all that a build wants besides: compile once, hand it on."""

from opsieve.runtimes.source.packing.pack import Packed, pack
from opsieve.runtimes.source.packing.unpack import Unpacked, unpack_runtime

__all__ = ["Packed", "Unpacked", "pack", "unpack_runtime"]
