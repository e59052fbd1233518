"""Whether a flag held in a fresh session: pure, and the same however often it is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from alerts.verdicts import CHANGES
from store.records import BaselineKind, Outcome, SecondSession, Standing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from alerts.policy import Policy
    from store.records import Verdict

_NO_LINKS: Mapping[str, str] = MappingProxyType({})


def settle(
    sessions: Sequence[Verdict],
    *,
    resolution_ms: float,
    policy: Policy,
    confirms: Mapping[str, str] = _NO_LINKS,
) -> list[Verdict]:
    """Give each flag the standing that another session lends it, and say which session that was.

    The session that was measured to confirm a flag decides, the first of them that could have
    seen it; measuring again until one agrees would confirm noise. A flag that no session was
    measured for is held against its neighbours in time: one that agrees confirms it, or else
    the next one withdraws it. Sessions that gave no verdict, or were too coarse to see a change
    of that size, say nothing either way.

    Two sessions that agree confirm one another when neither stands against a single baseline
    run (it would be the same in both, with whatever its own session did to it) and both
    effects are worth it.

    Args:
        sessions: verdicts on one series of one commit, one per run, oldest run first.
        resolution_ms: time quantum of one sample, the coarsest of all sessions; an effect below it
            cannot be confirmed.
        policy: the smallest effect that can be confirmed.
        confirms: for each run that was measured to confirm another, that run.
    """
    known = _Sessions(tuple(sessions), confirms, resolution_ms, policy)
    return [
        known.settled(verdict) if verdict.outcome in CHANGES else _unflagged(verdict) for verdict in sessions
    ]


@dataclass(frozen=True, slots=True)
class _Sessions:
    """All sessions on one series of one commit, oldest first."""

    verdicts: tuple[Verdict, ...]
    confirms: Mapping[str, str]
    resolution_ms: float
    policy: Policy

    def settled(self, flag: Verdict) -> Verdict:
        """The flag with its standing and the session that this rests on."""
        asked = self._asked(flag)
        if asked is not None:
            return self._beside(flag, asked)
        before, after = self._neighbours(flag)
        agreeing = [other for other in (before, after) if other and other.outcome is flag.outcome]
        pooled = [other for other in agreeing if other.baseline_kind is not BaselineKind.SINGLE]
        if agreeing:
            return self._beside(flag, (pooled or agreeing)[0])
        if after is not None and _could_see(after, flag):
            return self._beside(flag, after)
        silent = next(self._confirming(flag), None)  # it was measured for this flag, and could not tell
        return replace(flag, standing=Standing.FLAGGED, second=None if silent is None else _second(silent))

    def _asked(self, flag: Verdict) -> Verdict | None:
        """The other one of two sessions of which the later was measured to confirm the earlier."""
        answers = (other for other in self._confirming(flag) if _could_see(other, flag))
        answer = next(answers, None)
        if answer is not None:
            return answer
        first = self._of_run(self.confirms.get(flag.run_id))
        if first is not None and first.outcome is flag.outcome and self._asked(first) is flag:
            return first
        return None

    def _confirming(self, flag: Verdict) -> Iterator[Verdict]:
        return (other for other in self.verdicts if self.confirms.get(other.run_id) == flag.run_id)

    def _of_run(self, run_id: str | None) -> Verdict | None:
        return next((verdict for verdict in self.verdicts if verdict.run_id == run_id), None)

    def _neighbours(self, flag: Verdict) -> tuple[Verdict | None, Verdict | None]:
        """The sessions with a verdict before and after."""
        conclusive = [v for v in self.verdicts if v.outcome is not Outcome.INCONCLUSIVE]
        place = next(index for index, verdict in enumerate(conclusive) if verdict.run_id == flag.run_id)
        before = conclusive[place - 1] if place > 0 else None
        return before, next(iter(conclusive[place + 1 :]), None)

    def _beside(self, flag: Verdict, other: Verdict) -> Verdict:
        """What a flag comes to beside a session that could have seen it."""
        standing = Standing.WITHDRAWN
        if other.outcome is flag.outcome:
            single = BaselineKind.SINGLE in (flag.baseline_kind, other.baseline_kind)
            confirmed = not single and self._is_worth_it(flag) and self._is_worth_it(other)
            standing = Standing.CONFIRMED if confirmed else Standing.FLAGGED
        return replace(flag, standing=standing, second=_second(other))

    def _is_worth_it(self, verdict: Verdict) -> bool:
        if verdict.effect is None or not verdict.candidate.center:
            return False
        smallest = max(self.policy.confirm_effect, self.resolution_ms / verdict.candidate.center)
        return abs(verdict.effect) >= smallest


def _unflagged(verdict: Verdict) -> Verdict:
    if verdict.standing is Standing.NONE and verdict.second is None:
        return verdict  # nearly every verdict, and making another one like it takes longer than all the rest
    return replace(verdict, standing=Standing.NONE, second=None)


def _could_see(other: Verdict, flag: Verdict) -> bool:
    """Whether a session answers for a flag: it saw a change itself, or would have seen this one."""
    if other.outcome is not Outcome.UNCHANGED:
        return other.outcome in CHANGES
    return other.smallest_seen is not None and other.smallest_seen <= abs(flag.effect or 0.0)


def _second(verdict: Verdict) -> SecondSession:
    return SecondSession(
        run_id=verdict.run_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        effect=verdict.effect,
        effect_low=verdict.effect_low,
        effect_high=verdict.effect_high,
    )
