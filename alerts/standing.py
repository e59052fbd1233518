"""Whether a flag held in a fresh session: pure, and the same however often it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from alerts.verdicts import CHANGES
from store.records import BaselineKind, Outcome, Standing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.policy import Policy
    from store.records import Verdict


def settle(sessions: Sequence[Verdict], *, resolution_ms: float, policy: Policy) -> list[Verdict]:
    """Give each flag the standing that the sessions around it lend it.

    A flag is CONFIRMED when the session before or after it was flagged the same way, both
    against several runs (a single baseline run would be the same in both, with whatever its
    own session did to it), and the effect is worth it. It is WITHDRAWN when the next session
    did not show it. Sessions that gave no verdict say nothing either way.

    Args:
        sessions: verdicts on one series of one commit, one per run, oldest run first.
        resolution_ms: time quantum of one sample; an effect below it cannot be confirmed.
        policy: the smallest effect that can be confirmed.
    """
    conclusive = [verdict for verdict in sessions if verdict.outcome is not Outcome.INCONCLUSIVE]
    place = {verdict.run_id: index for index, verdict in enumerate(conclusive)}
    return [
        replace(verdict, standing=_standing(conclusive, place[verdict.run_id], resolution_ms, policy))
        if verdict.outcome in CHANGES
        else replace(verdict, standing=Standing.NONE)
        for verdict in sessions
    ]


def _standing(conclusive: Sequence[Verdict], index: int, resolution_ms: float, policy: Policy) -> Standing:
    flag = conclusive[index]
    before = conclusive[index - 1] if index > 0 else None
    after = conclusive[index + 1] if index + 1 < len(conclusive) else None
    if any(_agree(flag, other) for other in (before, after)):
        return Standing.CONFIRMED if _worth_it(flag, resolution_ms, policy) else Standing.FLAGGED
    if after is not None and after.outcome is not flag.outcome:
        return Standing.WITHDRAWN
    return Standing.FLAGGED


def _agree(flag: Verdict, other: Verdict | None) -> bool:
    return (
        other is not None
        and other.outcome is flag.outcome
        and BaselineKind.SINGLE not in (flag.baseline_kind, other.baseline_kind)
    )


def _worth_it(flag: Verdict, resolution_ms: float, policy: Policy) -> bool:
    if flag.effect is None or not flag.candidate.center:
        return False
    return abs(flag.effect) >= max(policy.confirm_effect, resolution_ms / flag.candidate.center)
