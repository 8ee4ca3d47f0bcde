"""What a link kept, why, and what it costs: read from the objects themselves."""

from opsieve.runtimes.source.link.account.chains import chains_to
from opsieve.runtimes.source.link.account.reading import read_account
from opsieve.runtimes.source.link.account.selecting import selection_of
from opsieve.runtimes.source.link.account.store import ACCOUNT, account_from_json, account_to_json
from opsieve.runtimes.source.link.account.values import FileSizes, KeptOperator, LinkAccount, Need, Sizes

__all__ = [
    "ACCOUNT",
    "FileSizes",
    "KeptOperator",
    "LinkAccount",
    "Need",
    "Sizes",
    "account_from_json",
    "account_to_json",
    "chains_to",
    "read_account",
    "selection_of",
]
