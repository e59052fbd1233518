"""What is news to an audience: changes that it was not told of, and those that are over. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from alerts.policy import reaches
from store.outbox_records import Fact, News
from store.records import Outcome, Standing, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from alerts.audience import Audience
    from alerts.inbox import Change
    from alerts.judge import JudgedPoint, RunJudgement
    from store.records import RunHeader, SeriesKey, SeriesPoint, Verdict

RECOVERY_SESSIONS = 2  # one fast session may be an accident, as one slow session may be


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A regression that an audience is to be told of.

    Attributes:
        run_id: the run whose judgement tells it.
    """

    repository: str
    commit_sha: str
    series: SeriesKey
    run_id: str

    @property
    def fact(self) -> Fact:
        """As the outbox keeps it."""
        return Fact(
            kind=News.REGRESSION,
            repository=self.repository,
            commit_sha=self.commit_sha,
            series_id=self.series.id,
            run_id=self.run_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What is due, and how many regressions of the minimum tier are not, by the reason."""

    due: tuple[Due, ...]
    left_out: Counter[str]


def select(
    changes: Iterable[Change], judgements: Sequence[RunJudgement], audience: Audience, told: Collection[Fact]
) -> Selection:
    """Choose from the confirmed changes that the judged runs show.

    A level that moved is confirmed on the commit that moved it and on those after it. It is one
    change, and told once, however many commits show it.

    Args:
        changes: every confirmed change in the store, with the decisions about it.
        judgements: the runs that are asked about.
        audience: who is told.
        told: what it was told before.
    """
    measured = {
        (run.header.repository, run.header.commit_sha, item.point.series.id)
        for run in judgements
        for item in run.judged
    }
    before = {
        (fact.repository, fact.commit_sha, fact.series_id) for fact in told if fact.kind is News.REGRESSION
    }
    due: list[Due] = []
    left_out: Counter[str] = Counter()
    for change in changes:
        places = {(change.repository, sha, change.series.id) for sha in change.shas}
        if not places & measured or not _is_worth_it(change.verdict, audience):
            continue
        why = "told before" if places & before else _why_not(change)
        if why is not None:
            left_out[why] += 1
            continue
        due.append(
            Due(
                repository=change.repository,
                commit_sha=change.commit_sha,
                series=change.series,
                run_id=change.verdict.run_id,
            )
        )
    return Selection(due=tuple(due), left_out=left_out)


def flags(
    judgement: RunJudgement,
    audience: Audience,
    told: Collection[Fact],
    is_muted: Callable[[SeriesKey], bool],
    changes: Iterable[Change] = (),
) -> Selection:
    """The regressions of a run that no fresh session has confirmed, for an audience that asked for them.

    Args:
        judgement: the run.
        audience: who is told.
        told: what it was told before.
        is_muted: whether a series is muted today.
        changes: every flagged change in the store. A drift is flagged on each commit, and told once.
    """
    before = {(fact.repository, fact.commit_sha, fact.series_id) for fact in told}
    for change in changes:
        places = {(change.repository, sha, change.series.id) for sha in change.shas}
        if places & before:
            before |= places
    due: list[Due] = []
    left_out: Counter[str] = Counter()
    for item in judgement.judged:
        if item.verdict.standing is not Standing.FLAGGED or not _is_worth_it(item.verdict, audience, item):
            continue
        found = Due(
            repository=judgement.header.repository,
            commit_sha=code_of(judgement.header),
            series=item.point.series,
            run_id=judgement.header.run_id,
        )
        if (found.repository, found.commit_sha, found.series.id) in before:
            left_out["told before"] += 1
        elif is_muted(found.series):
            left_out["muted"] += 1
        else:
            due.append(found)
    return Selection(due=tuple(due), left_out=left_out)


def code_of(header: RunHeader) -> str:
    """The commit that was measured; of uncommitted code, which exists once, the run's id."""
    return header.run_id if header.commit_sha is None or header.dirty else header.commit_sha


def waiting(judgement: RunJudgement, audience: Audience) -> int:
    """How many regressions of a run are flagged and not confirmed, of those worth a message."""
    return sum(
        item.verdict.standing is Standing.FLAGGED and _is_worth_it(item.verdict, audience, item)
        for item in judgement.judged
    )


def recovered(verdict: Verdict, points: Sequence[SeriesPoint]) -> SeriesPoint | None:
    """The newest point, where it and the session before it are both back at the old baseline.

    A point is back when its interval reaches down to the baseline's, the same rule that flagged
    the regression, and its centre is nearer to the old level than to the new one.

    Args:
        verdict: the confirmed regression.
        points: the series after the regression, on commits that have it in their history,
            oldest run first.
    """
    newest = points[-RECOVERY_SESSIONS:]
    if len(newest) < RECOVERY_SESSIONS or not all(_is_back(point, verdict) for point in newest):
        return None
    return newest[-1]


def _is_worth_it(verdict: Verdict, audience: Audience, item: JudgedPoint | None = None) -> bool:
    return (
        verdict.outcome is Outcome.REGRESSED
        and reaches(verdict.tier, audience.minimum)
        and audience.covers(verdict.series.case)
        and not (item is not None and item.is_sentinel)
    )


def _why_not(change: Change) -> str | None:
    if change.muted is not None:
        return "muted"
    if change.accepted is not None:
        return "accepted"
    return None if change.recovered_at is None else "back again"


def _is_back(point: SeriesPoint, verdict: Verdict) -> bool:
    before, slow, now = verdict.baseline, verdict.candidate, point.interval
    if before is None or before.bounds is None or slow.center is None or now.bounds is None:
        return False
    _, level, high = before.bounds
    low, center, _ = now.bounds
    return reaches(point.tier, Tier.B) and low <= high and abs(center - level) < abs(slow.center - center)
