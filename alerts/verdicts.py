"""The verdict on one point: pure, without a clock, the same whatever order the store returns rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alerts.baseline import Baseline, Doubt, describe
from alerts.direction import comparative, larger_is_better, seen_change, smallest_drop, turned
from alerts.effects import Effect, effect_against_pool, effect_between_windows
from alerts.pairs import pairs_of
from alerts.policy import Policy, reaches
from store import shown
from store.comparing import compare_intervals, widened
from store.folding import CONFIDENCE
from store.records import (
    BaselineKind,
    Drift,
    Interval,
    Outcome,
    Reason,
    SeriesPoint,
    Standing,
    Verdict,
)

if TYPE_CHECKING:
    from datetime import datetime

    from store.portable import Number
    from store.records import RunHeader

CHANGES = (Outcome.REGRESSED, Outcome.IMPROVED)


def judge_point(
    candidate: SeriesPoint, baseline: Baseline | Doubt, policy: Policy, *, judged_at: datetime
) -> Verdict:
    """Decide whether a point differs from its baseline.

    A change is flagged when the intervals do not overlap; ends that touch overlap. A pool
    also tells how far apart two runs of the same code lie, and the candidate's interval is
    widened by that. Beside a paired run the passes of the two are compared one by one; see
    ``alerts.pairs``. A change is at most FLAGGED here: confirming takes another session.

    Where the pool has an anchor, the point is compared with that as well, more strictly. A run
    of the base branch that is worse than the anchor and not worse than the pool has drifted,
    which is a regression; on another branch it is said, and held against nobody.
    """
    doubt = _doubt(candidate, policy)
    if doubt is not None:
        return inconclusive(candidate, doubt, judged_at=judged_at)
    if isinstance(baseline, Doubt):
        return inconclusive(candidate, baseline, judged_at=judged_at)
    decide = _beside_partner if baseline.kind is BaselineKind.PAIRED else _against_others
    decision = _worth_a_flag(decide(candidate, baseline, policy), policy)
    drift = None
    message = _sentence(candidate, baseline, decision, policy)
    if baseline.anchor is not None:
        since = _against_others(candidate, baseline.anchor, policy, confidence=policy.drift_confidence)
        since = _worth_a_flag(since, policy)
        drift = _drift(baseline.anchor, since)
        message += _drift_sentence(candidate.header, drift, decision, since)
        if _is_due_to_drift(candidate.header, decision, since):
            decision, baseline = replace(since, reason=Reason.DRIFTED), baseline.anchor
            message = f"{_drift_words(drift)} (95 %: {_between(since.effect)}); {message}"
    return _verdict(candidate, baseline, decision, message=message, drift=drift, judged_at=judged_at)


def _verdict(
    candidate: SeriesPoint,
    baseline: Baseline,
    decision: _Decision,
    *,
    message: str,
    drift: Drift | None,
    judged_at: datetime,
) -> Verdict:
    return Verdict(
        run_id=candidate.header.run_id,
        series=candidate.series,
        outcome=decision.outcome,
        reason=decision.reason,
        message=message,
        standing=Standing.FLAGGED if decision.outcome in CHANGES else Standing.NONE,
        tier=candidate.tier,
        windows=candidate.interval.windows,
        candidate=decision.interval,
        baseline=baseline.interval,
        baseline_kind=baseline.kind,
        baseline_run_ids=baseline.run_ids,
        effect=decision.effect.relative,
        effect_low=decision.effect.low,
        effect_high=decision.effect.high,
        p_value=decision.effect.p_value,
        smallest_seen=decision.smallest_seen,
        drift=drift,
        judged_at=judged_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decision:
    """What a comparison came to.

    Attributes:
        interval: the candidate's, as compared.
    """

    interval: Interval
    outcome: Outcome
    reason: Reason
    effect: Effect
    smallest_seen: float | None


def _against_others(
    candidate: SeriesPoint, baseline: Baseline, policy: Policy, *, confidence: float = CONFIDENCE
) -> _Decision:
    """By the intervals, of a run and a pool or another run."""
    widened = widen(candidate.interval, baseline, candidate.resolution_ms, confidence=confidence)
    outcome = compare_intervals(widened, baseline.interval)
    falling = larger_is_better(candidate.series, policy)
    smallest = smallest_drop if falling else smallest_seen
    return _Decision(
        interval=widened,
        outcome=turned(outcome) if falling else outcome,
        reason=Reason.INTERVALS_APART if outcome in CHANGES else Reason.INTERVALS_OVERLAP,
        effect=_effect(candidate, baseline),
        smallest_seen=smallest(widened, baseline.interval),
    )


def _beside_partner(candidate: SeriesPoint, baseline: Baseline, policy: Policy) -> _Decision:
    """Pass by pass, beside the run that took turns with this one."""
    pairs = pairs_of(baseline.nearest, candidate)
    apart = compare_intervals(candidate.interval, baseline.interval)
    outcome = pairs.outcome(apart, p_limit=policy.paired_p)
    falling = larger_is_better(candidate.series, policy)
    smallest = pairs.smallest_drop if falling else pairs.smallest_seen
    smallest_apart = (smallest_drop if falling else smallest_seen)(candidate.interval, baseline.interval)
    return _Decision(
        interval=candidate.interval,
        outcome=turned(outcome) if falling else outcome,
        reason=Reason.PAIRS_DIFFER if outcome in CHANGES else Reason.PAIRS_AGREE,
        effect=pairs.effect,
        smallest_seen=smallest(smallest_apart, p_limit=policy.paired_p),
    )


def _worth_a_flag(decision: _Decision, policy: Policy) -> _Decision:
    """The same decision, unless the change is smaller than what anybody asked to be told."""
    least = policy.flag_effect
    if decision.smallest_seen is not None and decision.smallest_seen < least:
        decision = replace(decision, smallest_seen=least)
    if decision.outcome in CHANGES and abs(decision.effect.relative) < least:
        return replace(decision, outcome=Outcome.UNCHANGED, reason=Reason.BELOW_FLAG_EFFECT)
    return decision


def inconclusive(candidate: SeriesPoint, doubt: Doubt, *, judged_at: datetime) -> Verdict:
    """The verdict on a point that cannot be judged."""
    return Verdict(
        run_id=candidate.header.run_id,
        series=candidate.series,
        outcome=Outcome.INCONCLUSIVE,
        reason=doubt.reason,
        message=doubt.message,
        standing=Standing.NONE,
        tier=candidate.tier,
        windows=candidate.interval.windows,
        candidate=candidate.interval,
        baseline=None,
        baseline_kind=BaselineKind.NONE,
        judged_at=judged_at,
    )


def widen(
    interval: Interval, baseline: Baseline, resolution_ms: float, *, confidence: float = CONFIDENCE
) -> Interval:
    """The candidate's interval, no narrower than two runs of the same code lie apart, where that is known."""
    if baseline.run_sd is None:
        return interval
    return widened(
        interval,
        run_sd=baseline.run_sd,
        run_df=baseline.run_df,
        resolution_ms=resolution_ms,
        confidence=confidence,
    )


def smallest_seen(candidate: Interval, baseline: Interval) -> float | None:
    """The smallest relative slowdown that intervals of these widths would show as apart.

    None when an interval was refused, or reaches down to zero and can never be apart.
    """
    if candidate.bounds is None or baseline.bounds is None or candidate.bounds[0] <= 0:
        return None
    low, center, _ = candidate.bounds
    _, baseline_center, baseline_high = baseline.bounds
    return rise_to(baseline_high, baseline_center, center, low)


def rise_to(baseline_high: Number, baseline_center: Number, center: Number, low: Number) -> Number:
    """The rise that takes the low end of a candidate's interval to the high end of its baseline's."""
    return baseline_high / baseline_center * center / low - 1


def _doubt(candidate: SeriesPoint, policy: Policy) -> Doubt | None:
    """What the candidate itself lacks, before anything is compared."""
    if candidate.interval.bounds is None:
        windows = shown.count(candidate.interval.windows, "usable window")
        return Doubt(
            reason=Reason.TOO_FEW_WINDOWS,
            message=f"{windows} give no interval; 3 are the fewest, 6 make tier A possible: "
            "measure again with more passes",
        )
    if not reaches(candidate.tier, policy.minimum_tier):
        return Doubt(
            reason=Reason.TIER_TOO_LOW,
            message=f"tier {candidate.tier} is below {policy.minimum_tier} ({evidence(candidate)}): "
            "remove the cause and measure again",
        )
    return None


def evidence(point: SeriesPoint) -> str:
    """The deciding sentence behind a tier."""
    return shown.one_line(point.tier_evidence[0]) if point.tier_evidence else "no evidence was stored"


def _effect(candidate: SeriesPoint, baseline: Baseline) -> Effect:
    bounds, baseline_bounds = candidate.interval.bounds, baseline.interval.bounds
    if baseline.run_sd is None or bounds is None or baseline_bounds is None:
        return effect_between_windows(
            baseline.nearest.window_medians_ms,
            candidate.window_medians_ms,
            quantum_ms=max(candidate.resolution_ms, baseline.nearest.resolution_ms),
        )
    return effect_against_pool(
        baseline_ms=baseline_bounds[1],
        candidate_ms=bounds[1],
        run_sd=baseline.run_sd,
        runs=len(baseline.points),
        run_df=baseline.run_df,
        quantum_ms=candidate.resolution_ms,
    )


def _sentence(candidate: SeriesPoint, baseline: Baseline, decision: _Decision, policy: Policy) -> str:
    outcome, effect, smallest = decision.outcome, decision.effect, decision.smallest_seen
    against = describe(baseline)
    between = _between(effect)
    if outcome in CHANGES:
        rose = (outcome is Outcome.REGRESSED) != larger_is_better(candidate.series, policy)
        word = comparative(candidate.series, rose=rose)
        said = f"{shown.size(effect.relative)} {word} than {against} (95 %: {between})"
    elif decision.reason is Reason.BELOW_FLAG_EFFECT:
        said = (
            f"{shown.change(effect.relative)} against {against} (95 %: {between}), and changes below "
            f"{shown.share(policy.flag_effect)} are not flagged"
        )
    else:
        said = say_unchanged(against, between, smallest, seen_change(candidate.series, policy))
    if baseline.kind is BaselineKind.SINGLE:
        said += "; provisional - session variance unknown"
    if candidate.header.dirty:
        said += "; measured with uncommitted changes, so the commit alone does not reproduce it"
    return said


def say_unchanged(against: str, between: str, smallest: float | None, word: str) -> str:
    """What is said where nothing was seen.

    Args:
        against: the baseline in words.
        between: the interval of the effect.
        smallest: the smallest change that would have been flagged, where there is one.
        word: what such a change is called.
    """
    said = f"not distinguishable from {against} ({between})"
    if smallest is None:
        return said
    return f"{said}; a {word} of {shown.share(smallest)} would have been flagged"


def _drift(anchor: Baseline, decision: _Decision) -> Drift:
    return Drift(
        since=anchor.since or "",
        effect=decision.effect.relative,
        low=decision.effect.low,
        high=decision.effect.high,
        apart=decision.outcome in CHANGES,
        run_ids=anchor.run_ids,
    )


def _is_due_to_drift(header: RunHeader, decision: _Decision, since: _Decision) -> bool:
    return (
        since.outcome is Outcome.REGRESSED and decision.outcome is Outcome.UNCHANGED and _is_on_base(header)
    )


def _is_on_base(header: RunHeader) -> bool:
    """Whether the run measured a commit of its base branch, which is where a drift is judged."""
    return header.merge_base == header.commit_sha and not header.dirty


def _drift_sentence(header: RunHeader, drift: Drift, decision: _Decision, since: _Decision) -> str:
    """What a reader is told of a drift that decides nothing."""
    if not drift.apart or _is_due_to_drift(header, decision, since):
        return ""
    elsewhere = (
        "" if _is_on_base(header) else f", which is judged on {shown.visible(header.base_ref or 'its base')}"
    )
    return f"; {_drift_words(drift)}{elsewhere}"


def _drift_words(drift: Drift) -> str:
    return f"drift: {shown.change(drift.effect)} since {shown.visible(drift.since)}"


def _between(effect: Effect) -> str:
    return say_between(effect.low, effect.high)


def say_between(low: float, high: float) -> str:
    """The interval of an effect: ``+0.41 % to +1.20 %``."""
    return f"{shown.change(low)} to {shown.change(high)}"
