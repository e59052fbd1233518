"""Judge a stored run: load what it is judged by, judge, remember the verdicts."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts.baseline import distance, on_line
from alerts.excuses import excused
from alerts.judge import Evidence, RunJudgement, judge_evidence
from alerts.partner import partner_id
from alerts.policy import Policy
from alerts.standing import settle
from store.commits import first_parent_line, load_commits
from store.errors import RunNotFound
from store.runs import find_runs, load_run
from store.series import load_points
from store.verdicts import load_verdicts, save_verdicts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alerts.policy import Rules
    from store.database import Database
    from store.records import Commit, Failure, RunHeader, SeriesPoint, Verdict


def judge_run(
    database: Database, run_id: str, rules: Rules | None = None, *, judged_at: datetime | None = None
) -> RunJudgement:
    """Judge a run, save its verdicts, and settle the flags of earlier sessions on its commit.

    Args:
        database: the store that holds the run.
        run_id: the run's id, or a prefix of it that no other run shares.
        rules: the thresholds; the defaults where None.
        judged_at: what to write down as the time of judging; now where None.

    Raises:
        StoreError: the store cannot be read, or holds no such run.
    """
    rules = rules or Policy()
    evidence = _gather(database, run_id, rules)
    judgement = judge_evidence(evidence, rules, judged_at=judged_at or datetime.now(UTC))
    settled = _settle(database, judgement, rules)
    save_verdicts(database, settled)
    own = [verdict for verdict in settled if verdict.run_id == judgement.header.run_id]
    return excused(database, judgement.with_verdicts(own), at=judged_at or datetime.now(UTC))


def baseline_line(header: RunHeader, commits: Mapping[str, Commit]) -> dict[str, int]:
    """First-parent distance from the merge-base of every commit that may be a baseline.

    The judged commit is not its own baseline; uncommitted changes to it may be compared with it.
    """
    if header.commit_sha is None or header.merge_base is None:
        return {}
    known = [commit.sha for commit in first_parent_line(commits, header.merge_base)]
    own = None if header.dirty else header.commit_sha
    return {sha: index for index, sha in enumerate(known or [header.merge_base]) if sha != own}


def _gather(database: Database, run_id: str, rules: Rules) -> Evidence:
    run = load_run(database, run_id)
    header = run.header
    line = baseline_line(header, load_commits(database, header.repository))
    ancestors = sorted(
        (other for other in find_runs(database) if on_line(header, other, line)),
        key=lambda other: distance(other, line),
    )[: rules.general.reach_runs]
    candidates = tuple(load_points(database, run_ids=[header.run_id]))
    paired, paired_failures = _partner(database, header)
    return Evidence(
        header=header,
        candidates=candidates,
        failures=run.failures,
        history=tuple(_history(database, candidates, ancestors)),
        line=line,
        paired=paired,
        paired_failures=paired_failures,
    )


def _partner(database: Database, header: RunHeader) -> tuple[tuple[SeriesPoint, ...], tuple[Failure, ...]]:
    """What the run that took turns with this one measured, and what failed in it; nothing without one."""
    partner = partner_id(header)
    if partner is None:
        return (), ()
    try:
        failures = load_run(database, partner).failures
    except RunNotFound:  # its bundle has not arrived here; the verdicts say so
        return (), ()
    return tuple(load_points(database, run_ids=[partner])), failures


def _history(
    database: Database, candidates: Sequence[SeriesPoint], ancestors: Sequence[RunHeader]
) -> list[SeriesPoint]:
    """The points of the candidates' benchmarks on all ancestors, and all of the nearest runs.

    The latter tell what the run should have measured as well.
    """
    if not ancestors:
        return []
    benchmarks = sorted({point.series.case.benchmark for point in candidates})
    points = load_points(database, run_ids=[run.run_id for run in ancestors], benchmarks=benchmarks)
    # Under the candidate's own conditions: a run on another GPU says nothing about what is missing here.
    nearest: dict[tuple[str, ...], str | None] = {}
    for run in ancestors:
        nearest.setdefault((run.gpu_uuid, run.timer, run.clock_regime, run.environment), run.commit_sha)
    expected = [
        run.run_id
        for run in ancestors
        if nearest[(run.gpu_uuid, run.timer, run.clock_regime, run.environment)] == run.commit_sha
    ]
    seen = {(point.header.run_id, point.series) for point in points}
    points += [
        point
        for point in load_points(database, run_ids=expected)
        if (point.header.run_id, point.series) not in seen
    ]
    return points


def _settle(database: Database, judgement: RunJudgement, rules: Rules) -> list[Verdict]:
    """The verdicts of this run, and those of other sessions on its commit whose standing they change."""
    header = judgement.header
    if header.commit_sha is None or header.dirty:  # uncommitted changes are never the same code twice
        return list(judgement.verdicts)
    sessions = [
        run
        for run in find_runs(database, commit_sha=header.commit_sha, gpu_uuid=header.gpu_uuid)
        if run.repository == header.repository and not run.dirty
    ]
    order = {run.run_id: (run.started_at, run.run_id) for run in sessions}
    others = [run.run_id for run in sessions if run.run_id != header.run_id]
    by_series: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in load_verdicts(database, run_ids=others) if others else []:
        by_series[verdict.series.id].append(verdict)
    settled: list[Verdict] = []
    for item in judgement.judged:
        known = by_series[item.point.series.id]
        together = sorted([*known, item.verdict], key=lambda verdict: order[verdict.run_id])
        fresh = settle(
            together, resolution_ms=item.point.resolution_ms, policy=rules.of(item.point.series.case)
        )
        settled += [verdict for verdict in fresh if verdict not in known]
    return settled
