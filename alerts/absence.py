"""Why a series has no baseline: the nearest thing that was measured tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.baseline import Doubt, measured_before
from alerts.completeness import environment_change
from alerts.verdicts import evidence
from store import shown
from store.records import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.policy import Policy
    from store.records import RunHeader, SeriesKey, SeriesPoint


def explain_absence(
    candidate: SeriesPoint, history: Iterable[SeriesPoint], line: Mapping[str, int], policy: Policy
) -> Doubt:
    """Say why ``choose_baseline`` found nothing, and what to do next.

    Args:
        candidate: the point without a baseline.
        history: points of other runs on ancestors; of all keys, or a changed key reads as new.
        line: first-parent distance from the merge-base of every commit that may serve.
        policy: the lowest tier that may serve.
    """
    points = list(history)
    before = measured_before(candidate, points, line)
    same_case = [point for point in before if point.series.case == candidate.series.case]
    same_series = [point for point in same_case if point.series == candidate.series]
    return (
        (unusable(same_series, policy) if same_series else None)
        or (other_key(candidate.series, same_case) if same_case else None)
        or (_new(before) if before else None)
        or _never_measured(candidate, points, line)
    )


def differences(ours: SeriesKey, theirs: SeriesKey) -> list[tuple[Reason, str]]:
    """What keeps two measurements of one case apart, weightiest first, as sentences."""
    found: list[tuple[Reason, str]] = []
    if ours.gpu_uuid != theirs.gpu_uuid:
        found.append((Reason.OTHER_GPU, f"measured on {theirs.gpu_uuid}, this run on {ours.gpu_uuid}"))
    if ours.timer is not theirs.timer:
        found.append((Reason.OTHER_TIMER, f"timed by {theirs.timer}, this run by {ours.timer}"))
    if ours.environment != theirs.environment:
        found.append(
            (
                Reason.OTHER_ENVIRONMENT,
                f"environment {environment_change(theirs.environment, ours.environment)}",
            )
        )
    for part in ("cache_state", "clock_regime", "quantity"):
        mine, other = getattr(ours, part), getattr(theirs, part)
        if mine is not other:
            name = part.replace("_", " ")
            found.append((Reason.OTHER_CONDITIONS, f"{name} {other}, in this run {mine}"))
    return found


def history_unknown(header: RunHeader) -> Doubt | None:
    """What to say when a run cannot be placed in its history for sure; None when it can.

    A baseline that was found all the same might be one of another commit, so none is looked for.
    """
    if header.commit_sha is None and header.history_note is None:
        why = "the measured code is in no git repository: measure a commit"
    elif header.merge_base is None and header.history_note is None:
        why = "where the commit left its base branch is not known: name that branch with --base"
    elif header.history_note is not None:
        why = shown.one_line(header.history_note, limit=400)
    else:
        return None
    return Doubt(reason=Reason.HISTORY_MISSING, message=f"{why}; then measure again")


def unusable(same_series: Sequence[SeriesPoint], policy: Policy) -> Doubt:
    """What to say when the series was measured before, and none of it can be trusted."""
    nearest = same_series[0]
    runs = shown.count(len(same_series), "earlier run")
    return Doubt(
        reason=Reason.BASELINE_TIER_TOO_LOW,
        message=f"{runs} to compare with, none of tier {policy.minimum_tier} or better (nearest "
        f"{shown.short(nearest.header.commit_sha)}: tier {nearest.tier}, {evidence(nearest)}): "
        f"{_measure(nearest.header.commit_sha)}",
    )


def other_key(ours: SeriesKey, same_case: Sequence[SeriesPoint]) -> Doubt:
    """What to say when the case was measured before, under a key that is never compared with ours."""
    closest = min(same_case, key=lambda point: len(differences(ours, point.series)))
    found = differences(ours, closest.series)
    if [reason for reason, _ in found] == [Reason.OTHER_ENVIRONMENT]:
        return _other_environment(ours, closest)
    said = "; ".join(sentence for _, sentence in found)
    return Doubt(
        reason=found[0][0],
        message="the baseline was measured under other conditions, which are never compared "
        f"(nearest {shown.short(closest.header.commit_sha)}: {said}): "
        f"{_measure(closest.header.commit_sha)} under the conditions of this run",
    )


def _other_environment(ours: SeriesKey, closest: SeriesPoint) -> Doubt:
    nearest = closest.header.commit_sha
    changed = environment_change(closest.series.environment, ours.environment)
    return Doubt(
        reason=Reason.OTHER_ENVIRONMENT,
        message=f"another environment began a new series here ({changed}), "
        f"and what was measured before, up to {shown.short(nearest)}, is never compared with it: "
        f"{_measure(nearest)} under the conditions of this run, or go on: six runs make a pool",
    )


def _new(before: Sequence[SeriesPoint]) -> Doubt:
    nearest = shown.short(before[0].header.commit_sha)
    return Doubt(
        reason=Reason.NEW_BENCHMARK,
        message=f"no ancestor measured so far has a number for it (nearest {nearest}): it is new, and is "
        "judged once an ancestor, or the next commit, is measured",
    )


def _never_measured(candidate: SeriesPoint, points: Sequence[SeriesPoint], line: Mapping[str, int]) -> Doubt:
    if not line:
        return Doubt(
            reason=Reason.NO_BASELINE,
            message="the commit has no known ancestor on its base branch: "
            "the next commit will be compared with this one",
        )
    nearest = min(line, key=line.__getitem__)
    dirty = any(
        point.header.dirty and point.header.commit_sha in line and point.series == candidate.series
        for point in points
    )
    why = "was measured only with uncommitted changes" if dirty else "was not measured"
    return Doubt(
        reason=Reason.NO_BASELINE,
        message=f"{shown.short(nearest)}, the commit to compare with, {why}, "
        f"and none of its ancestors was: {_measure(nearest)}",
    )


def _measure(sha: str | None) -> str:
    return f"run `collect --commit {shown.short(sha)}`"
