"""Judgements built from records, for the tests of everything that judges or tells."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from builders import a_failure, a_point, a_sha
from triage_events import an_event

from alerts.judge import Evidence, RunJudgement, judge_evidence
from alerts.policy import Policy
from store.records import Case, Outcome, Standing
from store.triage_events import Action

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import SeriesPoint

JUDGED_AT = datetime(2026, 4, 1, 12, 0, tzinfo=UTC)
POLICY = Policy()


def a_line(merge_base: int = 20) -> dict[str, int]:
    """Distances from commit ``merge_base`` down to commit 1 of a straight history."""
    return {a_sha(number): merge_base - number for number in range(merge_base, 0, -1)}


def a_history(newest: int = 20, *, length: int = 20, **changes: Any) -> tuple[SeriesPoint, ...]:
    """One point on each of the last ``length`` commits up to ``newest``."""
    return tuple(a_point(commit, **changes) for commit in range(newest, newest - length, -1))


def a_candidate(scale: float = 1.0, *, commit: int = 21, **changes: Any) -> SeriesPoint:
    """A point on the commit after the history, ``scale`` times as slow, judged against commit 20."""
    header = {"merge_base": a_sha(20)} | changes.pop("header", {})
    return a_point(commit, header=header, **{"median_ms": 0.25 * scale} | changes)


def some_evidence(candidates: Sequence[SeriesPoint], **changes: Any) -> Evidence:
    """Candidates against twenty commits, each with one run of each candidate's benchmark."""
    history = tuple(
        a_point(
            commit,
            benchmark=point.series.case.benchmark,
            parameters=dict(point.series.case.parameters),
            tags=point.tags,
        )
        for point in candidates
        for commit in range(20, 0, -1)
    )
    fields: dict[str, Any] = {
        "header": candidates[0].header,
        "candidates": tuple(candidates),
        "failures": (),
        "history": history,
        "line": a_line(),
    }
    return Evidence(**(fields | changes))


def a_judgement(*candidates: SeriesPoint, confirmed: bool = False, **changes: Any) -> RunJudgement:
    """The judgement on candidates; with ``confirmed``, as if a fresh session had shown the same."""
    judgement = judge_evidence(some_evidence(candidates, **changes), POLICY, judged_at=JUDGED_AT)
    if not confirmed:
        return judgement
    return judgement.with_verdicts(
        [
            replace(verdict, standing=Standing.CONFIRMED)
            for verdict in judgement.verdicts
            if verdict.outcome in (Outcome.REGRESSED, Outcome.IMPROVED)
        ]
    )


def a_telling_judgement(*, confirmed: bool = True) -> RunJudgement:
    """A run with something of everything: slower, faster, the same, new, failed and missing."""
    return replace(
        a_judgement(
            a_candidate(1.08, benchmark="softmax"),
            a_candidate(1.03, benchmark="top_k"),
            a_candidate(0.9, benchmark="rms_norm"),
            a_candidate(1.0, benchmark="matmul"),
            a_candidate(1.0, benchmark="gather"),
            failures=(a_failure(),),
            confirmed=confirmed,
        ),
        missing=(Case.of("gone", {"rows": 8}),),
    )


def excused(judgement: RunJudgement, said: str) -> RunJudgement:
    """The judgement after somebody accepted and muted its first change, in these words."""
    first, *others = judgement.judged
    words: dict[str, Any] = {"body": f"since {said}", "decided_by": f"Ada {said}"}  # neither may be empty
    accepted, muted = an_event(**words), an_event(Action.MUTE, **words)
    return replace(judgement, judged=(replace(first, accepted=accepted, muted=muted), *others))
