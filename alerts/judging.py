"""Judge a stored run: load what it is judged by, judge, remember the verdicts."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts.excuses import excused
from alerts.gathering import gather
from alerts.judge import JudgedPoint, RunJudgement, judge_evidence
from alerts.multiplicity import with_q_values
from alerts.policy import Policy
from alerts.standing import settle
from store.places import load_resolutions
from store.runs import find_runs
from store.verdicts import load_verdicts, save_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.policy import Rules
    from store.database import Database
    from store.records import RunHeader, Verdict


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
    judgement = judge_evidence(gather(database, run_id, rules), rules, judged_at=moment)
    sessions = _sessions_on_commit(database, judgement.header)
    together = [
        judge_evidence(gather(database, other.run_id, rules), rules, judged_at=moment)
        for other in sessions
        if confirm_alike(other, judgement.header)
    ]
    settled = _settle(database, [judgement, *together], sessions, rules)
    for one in (*together, judgement):  # each that is judged anew, or it would be alone with its own suite
        settled = _beside_other_gpus(database, one.header, settled)
    save_verdicts(database, settled)
    own = [verdict for verdict in settled if verdict.run_id == judgement.header.run_id]
    return excused(database, judgement.with_verdicts(own), at=moment)


def _beside_other_gpus(database: Database, header: RunHeader, settled: Sequence[Verdict]) -> list[Verdict]:
    """These verdicts, and those of the commit's newest runs on other GPUs, with q-values over all of them."""
    if header.commit_sha is None or header.dirty or header.confirms_run_id is not None:
        return list(settled)
    newest = newest_by_gpu(
        run
        for run in find_runs(database, commit_sha=header.commit_sha)
        if run.repository == header.repository
    )
    own_newest = newest.pop(header.gpu_uuid, None)
    others = load_verdicts(database, run_ids=sorted(newest.values()))
    own = [verdict for verdict in settled if verdict.run_id == header.run_id]
    rest = [verdict for verdict in settled if verdict.run_id != header.run_id]
    fresh = with_q_values([*own, *others])
    if own_newest != header.run_id:  # the others stand beside the newest run on this GPU, not beside this one
        return [*rest, *fresh[: len(own)]]
    return [*rest, *fresh[: len(own)], *(v for v in fresh[len(own) :] if v not in others)]


def newest_by_gpu(runs: Iterable[RunHeader]) -> dict[str, str]:
    """The id of the newest whole run of committed code on each GPU, from runs of one commit, newest first."""
    newest: dict[str, str] = {}
    for run in runs:
        if run.speaks_for_itself and not run.dirty:
            newest.setdefault(run.gpu_uuid, run.run_id)
    return newest


def _sessions_on_commit(database: Database, header: RunHeader) -> list[RunHeader]:
    """The runs of the same code on the same GPU, this one among them."""
    if header.commit_sha is None or header.dirty:  # uncommitted changes are never the same code twice
        return []
    return [
        run
        for run in find_runs(database, commit_sha=header.commit_sha, gpu_uuid=header.gpu_uuid)
        if run.repository == header.repository and not run.dirty
    ]


def confirm_alike(other: RunHeader, header: RunHeader) -> bool:
    """Whether one of two runs was measured to confirm the other, or both to confirm a third."""
    firsts = [run.confirms_run_id or run.run_id for run in (other, header)]
    return other.run_id != header.run_id and firsts[0] == firsts[1]


def _settle(
    database: Database, judgements: Sequence[RunJudgement], sessions: Sequence[RunHeader], rules: Rules
) -> list[Verdict]:
    """The verdicts of these runs, and those of other sessions whose standing they change."""
    if not sessions:
        return [verdict for judgement in judgements for verdict in judgement.verdicts]
    judged_ids = {judgement.header.run_id for judgement in judgements}
    others = sorted({run.run_id for run in sessions} - judged_ids)
    return settle_sessions(
        [judgement.judged for judgement in judgements],
        load_verdicts(database, run_ids=others),
        sessions,
        rules,
        load_resolutions(database, [run.run_id for run in sessions]),
    )


def settle_sessions(
    judged: Iterable[Sequence[JudgedPoint]],
    stored: Iterable[Verdict],
    sessions: Sequence[RunHeader],
    rules: Rules,
    resolutions_ms: Mapping[str, float],
) -> list[Verdict]:
    """The verdicts of some runs on a commit, and those of its other sessions whose standing they change.

    Args:
        judged: the points of each run that was judged.
        stored: verdicts on the other sessions.
        sessions: the runs of the same code on the same GPU, all of them.
        rules: the smallest effect that can be confirmed.
        resolutions_ms: by the id of each series the coarsest time quantum of one sample in any of the
            sessions, whichever of them is judged: judging in another order changes no standing.
    """
    order = {run.run_id: (run.started_at, run.run_id) for run in sessions}
    confirms = {run.run_id: run.confirms_run_id for run in sessions if run.confirms_run_id is not None}
    items: dict[str, list[JudgedPoint]] = defaultdict(list)
    for of_run in judged:
        for item in of_run:
            items[item.point.series.id].append(item)
    known: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in stored:
        known[verdict.series.id].append(verdict)
    settled: list[Verdict] = []
    for series_id, own in items.items():
        point, others = own[0].point, known[series_id]
        fresh = settle(
            sorted([*others, *(item.verdict for item in own)], key=lambda verdict: order[verdict.run_id]),
            resolution_ms=resolutions_ms[series_id],
            policy=rules.of(point.series.case),
            confirms=confirms,
        )
        settled += [verdict for verdict in fresh if verdict not in others]
    return settled
