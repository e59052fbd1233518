"""Judge a stored run: load what it is judged by, judge, remember the verdicts."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts.baseline import distance, on_line
from alerts.excuses import excused
from alerts.judge import Evidence, JudgedPoint, RunJudgement, judge_evidence
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
    """Judge a run, save its verdicts, and settle the flags of other sessions on its commit.

    A run and those that were measured to confirm it are judged together, so that all of them
    stand against the same baseline whatever arrived in the store between them.

    Args:
        database: the store that holds the run.
        run_id: the run's id, or a prefix of it that no other run shares.
        rules: the thresholds; the defaults where None.
        judged_at: what to write down as the time of judging; now where None.

    Raises:
        StoreError: the store cannot be read, or holds no such run.
    """
    rules = rules or Policy()
    moment = judged_at or datetime.now(UTC)
    judgement = judge_evidence(_gather(database, run_id, rules), rules, judged_at=moment)
    sessions = _sessions_on_commit(database, judgement.header)
    together = [
        judge_evidence(_gather(database, other.run_id, rules), rules, judged_at=moment)
        for other in sessions
        if _confirm_alike(other, judgement.header)
    ]
    settled = _settle(database, [judgement, *together], sessions, rules)
    save_verdicts(database, settled)
    own = [verdict for verdict in settled if verdict.run_id == judgement.header.run_id]
    return excused(database, judgement.with_verdicts(own), at=moment)


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
    headers = find_runs(database)
    # A base branch may have moved since the run that is confirmed here; its baseline stays.
    first = next((other for other in headers if other.run_id == header.confirms_run_id), header)
    line = baseline_line(first, load_commits(database, header.repository))
    ancestors = sorted(
        (other for other in headers if on_line(header, other, line)),
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


def _sessions_on_commit(database: Database, header: RunHeader) -> list[RunHeader]:
    """The runs of the same code on the same GPU, this one among them."""
    if header.commit_sha is None or header.dirty:  # uncommitted changes are never the same code twice
        return []
    return [
        run
        for run in find_runs(database, commit_sha=header.commit_sha, gpu_uuid=header.gpu_uuid)
        if run.repository == header.repository and not run.dirty
    ]


def _confirm_alike(other: RunHeader, header: RunHeader) -> bool:
    """Whether one of two runs was measured to confirm the other, or both to confirm a third."""
    firsts = [run.confirms_run_id or run.run_id for run in (other, header)]
    return other.run_id != header.run_id and firsts[0] == firsts[1]


def _settle(
    database: Database, judgements: Sequence[RunJudgement], sessions: Sequence[RunHeader], rules: Rules
) -> list[Verdict]:
    """The verdicts of these runs, and those of other sessions whose standing they change."""
    if not sessions:
        return [verdict for judgement in judgements for verdict in judgement.verdicts]
    order = {run.run_id: (run.started_at, run.run_id) for run in sessions}
    confirms = {run.run_id: run.confirms_run_id for run in sessions if run.confirms_run_id is not None}
    items: dict[str, list[JudgedPoint]] = defaultdict(list)
    for judgement in judgements:
        for item in judgement.judged:
            items[item.point.series.id].append(item)
    others = sorted(order.keys() - {judgement.header.run_id for judgement in judgements})
    known: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in load_verdicts(database, run_ids=others):
        known[verdict.series.id].append(verdict)
    settled: list[Verdict] = []
    for series_id, judged in items.items():
        point, stored = judged[0].point, known[series_id]
        fresh = settle(
            sorted([*stored, *(item.verdict for item in judged)], key=lambda verdict: order[verdict.run_id]),
            resolution_ms=point.resolution_ms,
            policy=rules.of(point.series.case),
            confirms=confirms,
        )
        settled += [verdict for verdict in fresh if verdict not in stored]
    return settled
