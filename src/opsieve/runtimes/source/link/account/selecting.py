"""From the account of a link to the selection that goes with its runtime."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opsieve.models.needs import ModelNeeds
from opsieve.runtimes.source.link.account.values import LinkAccount
from opsieve.runtimes.source.wanted import Wanted
from opsieve.select.selection import (
    ModelIdentity,
    Reason,
    ReasonKind,
    SelectedOperator,
    Selection,
    join_operators,
)


def selection_of(account: LinkAccount, wanted: Wanted, models: Sequence[ModelNeeds]) -> Selection:
    """What the link kept, and why: what asked for an operator, and who needs it directly."""
    return Selection(
        runtime=account.runtime,
        scopes=wanted.scopes,
        models=tuple(sorted({ModelIdentity(m.path, m.format, m.fingerprint) for m in models})),
        operators=join_operators((*wanted.roots, *_needed(account))),
        missing=wanted.missing,
    )


def _needed(account: LinkAccount) -> Iterator[SelectedOperator]:
    for need in account.needs:
        if need.source is not None:
            yield SelectedOperator(need.target, (Reason(ReasonKind.DEPENDENCY, str(need.source)),))
        else:
            function = account.names(need)[-1:]
            yield SelectedOperator(need.target, (Reason(ReasonKind.FRAMEWORK, *(function or ("the runtime itself",))),))
