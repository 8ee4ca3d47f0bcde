"""Accounts as JSON files."""

from __future__ import annotations

from pathlib import Path

import msgspec

from opsieve.errors import InvalidFile
from opsieve.runtimes.source.link.account.values import LinkAccount

ACCOUNT = "account.json"
"""Its name in the folder of a runtime."""

SCHEMA = "opsieve-account-1"
_MAX_SIZE = 256 << 20


class _Document(msgspec.Struct, frozen=True):
    schema: str
    account: LinkAccount


def account_to_json(account: LinkAccount) -> bytes:
    """The account as JSON; the same account gives the same bytes."""
    return msgspec.json.encode(_Document(SCHEMA, account)) + b"\n"


def account_from_json(path: Path) -> LinkAccount:
    """Read what `account_to_json` wrote. Raises InvalidFile for anything else."""
    try:
        if path.stat().st_size > _MAX_SIZE:
            raise InvalidFile("the file is too large for an account", where=path, expected=f"{_MAX_SIZE} bytes or less")
        document = msgspec.json.decode(path.read_bytes(), type=_Document)
    except OSError as error:
        raise InvalidFile(f"cannot read the account: {error.strerror}", where=path) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidFile(f"this is no account: {error}", where=path, expected="an account.json of opsieve") from error
    if document.schema != SCHEMA:
        raise InvalidFile(f"unknown schema {document.schema!r}", where=path, expected=SCHEMA)
    return _checked(document.account, path)


def _checked(account: LinkAccount, path: Path) -> LinkAccount:
    names = {operator.name for operator in account.operators}
    count = len(account.functions)
    for need in account.needs:
        if need.target not in names or (need.source is not None and need.source not in names):
            raise InvalidFile(f"{need.target} is needed or needs something, and is not there", where=path)
        if any(not 0 <= place < count for place in need.functions):
            raise InvalidFile(f"a function on the way to {need.target} has no name", where=path)
    return account
