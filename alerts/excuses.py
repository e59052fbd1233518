"""Which results of a judgement people have excused: muted benchmarks, and changes they accepted."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING

from alerts.triage import Decisions
from alerts.verdicts import CHANGES
from store.triage import load_triage_events

if TYPE_CHECKING:
    from datetime import datetime

    from alerts.judge import RunJudgement
    from store.database import Database


def excused(database: Database, judgement: RunJudgement, *, at: datetime) -> RunJudgement:
    """The same judgement, with the decisions that the store holds marked on its points."""
    events = load_triage_events(database, repository=judgement.header.repository)
    return mark(judgement, Decisions.of(events), at=at)


def mark(judgement: RunJudgement, decisions: Decisions, *, at: datetime) -> RunJudgement:
    """Mark on each point whether it is muted at a moment, or its change accepted on this very commit.

    What was accepted on an earlier commit is no change any more: there the baseline begins.
    """
    commit_sha = judgement.header.commit_sha or ""
    on = at.astimezone(UTC).date()
    return replace(
        judgement,
        judged=tuple(
            replace(
                item,
                muted=decisions.mute(item.point.series, on=on),
                accepted=decisions.accepted(item.point.series).get(commit_sha)
                if item.verdict.outcome in CHANGES and not judgement.header.dirty
                else None,
            )
            for item in judgement.judged
        ),
    )
