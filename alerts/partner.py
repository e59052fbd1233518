"""The other run of a pair as a baseline: the strongest there is, and it needs no history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alerts.absence import other_key, unusable
from alerts.baseline import Baseline, Doubt, is_usable
from alerts.pairs import PAIRS_MIN, pairs_of
from store import shown
from store.records import BaselineKind, PairedRole, Reason
from store.sessions import short_run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alerts.policy import Policy
    from store.records import Failure, RunHeader, SeriesPoint


def partner_id(header: RunHeader) -> str | None:
    """The run that this one is to be judged by, pass by pass; None where it is no paired candidate."""
    return header.paired_with if header.paired_role is PairedRole.CANDIDATE else None


def choose_partner(
    candidate: SeriesPoint, points: Iterable[SeriesPoint], policy: Policy, failures: Sequence[Failure] = ()
) -> Baseline | Doubt | None:
    """The candidate's series in the run it was paired with, or why it is of no use.

    Args:
        candidate: the point to be judged.
        points: of that run; others are passed over.
        policy: the lowest tier that may serve.
        failures: what gave no number in that run.

    Returns:
        None where the candidate's run is no candidate of a pair.
    """
    partner = partner_id(candidate.header)
    if partner is None:
        return None
    own = [point for point in points if point.header.run_id == partner]
    same_case = [point for point in own if point.series.case == candidate.series.case]
    same_series = [point for point in same_case if point.series == candidate.series]
    usable = [point for point in same_series if is_usable(point, policy)]
    if usable:
        return _baseline(candidate, usable[0])
    if same_series:
        return unusable(same_series, policy)
    if same_case:
        return other_key(candidate.series, same_case)
    return _absent(candidate, own, failures)


def _baseline(candidate: SeriesPoint, partner: SeriesPoint) -> Baseline | Doubt:
    found = len(pairs_of(partner, candidate).pairs)
    if found < PAIRS_MIN:
        return Doubt(
            reason=Reason.TOO_FEW_WINDOWS,
            message=f"{shown.count(found, 'pair')} of passes with a number on both sides, and "
            f"{PAIRS_MIN} are the fewest: measure again with more passes",
        )
    return Baseline(kind=BaselineKind.PAIRED, points=(partner,), interval=partner.interval)


def _absent(candidate: SeriesPoint, own: Sequence[SeriesPoint], failures: Sequence[Failure]) -> Doubt:
    """Why the paired run has no number for the case."""
    own_failures = [failure for failure in failures if failure.case == candidate.series.case]
    suite_failures = [failure for failure in failures if failure.case is None]
    failed = next(iter([*own_failures, *suite_failures]), None)
    if failed is not None:
        return Doubt(
            reason=Reason.NO_BASELINE,
            message=f"it failed on the baseline's side of the pair, in {failed.stage} with "
            f"{shown.one_line(failed.kind, limit=100)}: there is nothing to compare with until it runs there",
        )
    if not own and not failures:
        partner = short_run(partner_id(candidate.header) or "")
        return Doubt(
            reason=Reason.NO_BASELINE,
            message=f"run {partner}, which it was paired with, is not in this store: "
            "import the bundle of that run too, then judge again",
        )
    return Doubt(
        reason=Reason.NEW_BENCHMARK,
        message="the baseline's side of the pair does not have it: it is new, and is judged once "
        "an ancestor, or the next commit, is measured",
    )
