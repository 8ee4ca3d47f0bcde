"""Why an operator is in a runtime that was linked from source, out of the link's own account."""

from __future__ import annotations

from opsieve.errors import InvalidFile
from opsieve.explain.why import Chain, Cost, Why
from opsieve.operators import OperatorName
from opsieve.runtimes.source.link.account import LinkAccount, Need, chains_to
from opsieve.select.selection import Reason, ReasonKind, Selection

_ASKED = (ReasonKind.MODEL, ReasonKind.OPTION, ReasonKind.FRAMEWORK)


def explain_kept(account: LinkAccount, selection: Selection, operator: OperatorName) -> tuple[Why, tuple[Need, ...]]:
    """The answer for one operator, and the needs that make up the first chain.

    What adding an operator would cost is not known: it may have to be compiled. Raises InvalidFile when the two do not
    belong together.
    """
    if selection.runtime != account.runtime:
        raise InvalidFile(
            f"the selection is for {selection.runtime.version} ({selection.runtime.build_id[:12]}), the account for "
            f"{account.runtime.version} ({account.runtime.build_id[:12]})",
            remedy="build again",
        )
    if operator not in account:
        return Why(str(operator), False, (), False, Cost((str(operator),), 0)), ()
    kept = account.operator(operator)
    reasons = {selected.name: selected.reasons for selected in selection.operators}
    found = []
    for root, needs in chains_to(account, operator).items():
        names = [*([root] if root is not None else []), *(need.target for need in needs)]
        asked_by = _by_runtime(account, needs) if root is None else _first(reasons.get(root, ()))
        found.append((Chain(asked_by, tuple(map(str, names))), needs))
    found.sort(key=lambda item: (_ASKED.index(item[0].asked_by.kind), len(item[0].operators), item[0].operators))
    cost = Cost(tuple(sorted(map(str, (*kept.only_here, operator)))), kept.exclusive.code)
    return Why(str(operator), True, tuple(chain for chain, _ in found), False, cost), found[0][1] if found else ()


def _by_runtime(account: LinkAccount, needs: tuple[Need, ...]) -> Reason:
    functions = account.names(needs[0])
    return Reason(ReasonKind.FRAMEWORK, functions[-1] if functions else "the linker kept it")


def _first(reasons: tuple[Reason, ...]) -> Reason:
    asked = [reason for reason in reasons if reason.kind in _ASKED]
    return min(asked, key=lambda reason: (_ASKED.index(reason.kind), reason), default=Reason(ReasonKind.OPTION, "--op"))
