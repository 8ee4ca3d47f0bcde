"""Which source file defines a symbol that a link misses."""

from opsieve.runtimes.source.index.learned import NOTHING_LEARNED, Learned
from opsieve.runtimes.source.index.object_symbols import ObjectSymbols, read_defined, read_object
from opsieve.runtimes.source.index.records import Candidate, Unplaced
from opsieve.runtimes.source.index.symbol_index import SymbolIndex

__all__ = [
    "NOTHING_LEARNED",
    "Candidate",
    "Learned",
    "ObjectSymbols",
    "SymbolIndex",
    "Unplaced",
    "read_defined",
    "read_object",
]
