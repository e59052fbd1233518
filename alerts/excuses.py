"""Which results of a judgement people have excused: muted benchmarks, and changes they accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING

from alerts.renamed_runs import renames_of_runs
from alerts.triage import Decisions
from alerts.verdicts import CHANGES
from store.older_names import NO_RENAMES
from store.triage import load_triage_events

if TYPE_CHECKING:
    from datetime import date, datetime

    from alerts.judge import RunJudgement
    from store.database import Database
    from store.records import RunHeader, Verdict
    from store.triage_events import TriageEvent


def excused(database: Database, judgement: RunJudgement, *, at: datetime) -> RunJudgement:
    """The same judgement, with the decisions that the store holds marked on its points."""
    header = judgement.header
    events = load_triage_events(database, repository=header.repository)
    if not events:
        return judgement
    renames = renames_of_runs(database, header.repository, [header.run_id])
    decisions = Decisions.of(events).following(renames.get(header.run_id, NO_RENAMES))
    return mark(judgement, decisions, at=at)


def mark(judgement: RunJudgement, decisions: Decisions, *, at: datetime) -> RunJudgement:
    """Mark on each point whether it is muted at a moment, or its change accepted on this very commit."""
    on = at.astimezone(UTC).date()
    return replace(
        judgement,
        judged=tuple(
            replace(
                item,
                muted=decisions.mute(item.point.series, on=on),
                accepted=accepted_there(item.verdict, judgement.header, decisions),
            )
            for item in judgement.judged
        ),
    )


def accepted_there(verdict: Verdict, header: RunHeader, decisions: Decisions) -> TriageEvent | None:
    """The decision that accepts a change on the commit of its run, or None.

    What was accepted on an earlier commit is no change any more: there the baseline begins.
    Uncommitted changes are not what anybody accepted.
    """
    if verdict.outcome not in CHANGES or header.dirty or header.commit_sha is None:
        return None
    return decisions.accepted(verdict.series).get(header.commit_sha)


def excuse_of(verdict: Verdict, header: RunHeader, decisions: Decisions, *, on: date) -> TriageEvent | None:
    """The decision for which a verdict is no alarm on a day, or None: an acceptance before a mute."""
    return accepted_there(verdict, header, decisions) or decisions.mute(verdict.series, on=on)
