"""Judge every run of a store again, by the same functions that judge one run.

What is stored afterwards is what judging one run after another would leave, over and over until
nothing changes any more. Only the way to the evidence differs: everything is read once, the history
of a series is sorted once, and the verdicts are written together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from alerts.baseline import Baseline
from alerts.errors import NothingToJudge
from alerts.families import Code, Decided, with_q_values
from alerts.judge import decide_points
from alerts.judging import confirm_alike, settle_sessions
from alerts.partner import partner_id
from alerts.past import Past, SeenFrom
from alerts.policy import Policy
from alerts.quiet import find_quiet
from alerts.triage import Decisions
from store import shown
from store.change_points import load_change_points
from store.commits import load_commits
from store.outlines import load_all_failures, load_outlines
from store.records import BaselineKind, Outcome
from store.releases import load_tags, releases
from store.renames import load_renames
from store.runs import find_runs
from store.series import load_points
from store.triage import load_triage_events
from store.verdict_columns import VerdictColumns
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from alerts.baseline import Doubt
    from alerts.judge import JudgedPoint
    from alerts.policy import Rules
    from alerts.quiet import Quiet
    from store.change_points import ChangePoint
    from store.database import Database
    from store.outlines import Outlines
    from store.records import Failure, RunHeader, SeriesKey, SeriesPoint, Verdict
    from store.verdict_columns import Rewritten

_POINTS_AT_ONCE = 20_000  # bounds what is read in full, and held as records, at one time

Baselines = dict["SeriesKey", "Baseline | Doubt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejudged:
    """What judging again came to.

    Attributes:
        runs: how many runs were judged.
        verdicts: how many verdicts were written.
        rewritten: these verdicts by what stood there before and what stands there now.
    """

    runs: int
    verdicts: int
    rewritten: tuple[Rewritten, ...]

    @property
    def changed(self) -> tuple[Rewritten, ...]:
        """Those that say something else than before, most frequent first."""
        different = (item for item in self.rewritten if item.before != item.after)
        return tuple(sorted(different, key=lambda item: (-item.number, str(item.before), str(item.after))))

    @property
    def is_conclusive(self) -> bool:
        """Whether anything at all could be judged."""
        return any(item.after[0] is not Outcome.INCONCLUSIVE for item in self.rewritten)


def rejudge(
    database: Database,
    rules: Rules | None = None,
    *,
    gpu: str | None = None,
    is_chosen: Callable[[RunHeader], bool] = lambda _: True,
    judged_at: datetime | None = None,
) -> Rejudged:
    """Judge all runs again, and store the verdicts in one transaction.

    A run that confirms a chosen one, or is confirmed by it, is judged with it.

    Args:
        database: the store.
        rules: the thresholds; the defaults where None.
        gpu: only runs on GPUs whose UUID begins with this; None for all.
        is_chosen: whether a run is to be judged.
        judged_at: what to write down as the time of judging; now where None.

    Raises:
        NothingToJudge: no run is left to judge.
        StoreError: the store cannot be read or written; then nothing is changed.
    """
    rules, moment = rules or Policy(), judged_at or datetime.now(UTC)
    headers = find_runs(database)
    chosen = {run.run_id for run in headers if run.gpu_uuid.startswith(gpu or "") and is_chosen(run)}
    if not chosen:
        on_gpu = "" if gpu is None else f" on a GPU that begins with {shown.visible(gpu)}"
        raise NothingToJudge(
            f"the store {database.url} holds no such run{on_gpu}: `store show` lists its runs, or name "
            "another store with --store"
        )
    points, columns, runs = load_outlines(database, headers), VerdictColumns(), 0
    failures = load_all_failures(database)
    for repository in sorted({run.repository for run in headers if run.run_id in chosen}):
        own = {run.run_id: run for run in headers if run.repository == repository}
        past = _past(database, repository, own, points, rules=rules, failures=failures)
        for bundle in _bundles(list(own.values()), chosen, points):
            runs += _judge_bundle(database, past, bundle, columns, judged_at=moment)
    return Rejudged(runs=runs, verdicts=columns.count, rewritten=tuple(columns.save(database)))


def _past(
    database: Database,
    repository: str,
    headers: Mapping[str, RunHeader],
    points: Outlines,
    *,
    rules: Rules,
    failures: Mapping[str, tuple[Failure, ...]],
) -> Past:
    steps: dict[SeriesKey, list[ChangePoint]] = defaultdict(list)
    for step in load_change_points(database, repository=repository):
        steps[step.series].append(step)
    return Past(
        rules=rules,
        headers=headers,
        points=points,
        failures=failures,
        commits=load_commits(database, repository),
        released=releases(load_tags(database, repository), rules.general.release_tags),
        renamed=list(load_renames(database, repository)),
        decisions=Decisions.of(load_triage_events(database, repository=repository)),
        steps=steps,
    )


def _bundles(headers: Sequence[RunHeader], chosen: Collection[str], points: Outlines) -> Iterator[list[Code]]:
    """The commits with a chosen run, the one that was measured first coming first, several at a time."""
    by_code: dict[tuple[str, ...], list[RunHeader]] = defaultdict(list)
    for run in headers:
        clean = run.commit_sha is not None and not run.dirty
        by_code[("commit", run.commit_sha or "") if clean else ("run", run.run_id)].append(run)
    bundle, size = [], 0
    for runs in sorted(by_code.values(), key=lambda runs: (runs[-1].started_at, runs[-1].run_id)):
        picked = [run for run in runs if run.run_id in chosen]
        judged = [run for run in runs if run in picked or any(confirm_alike(run, one) for one in picked)]
        if judged:
            bundle.append(Code(runs=runs, judged=judged))
            size += sum(len(points.rows(run.run_id)) for run in judged)
        if size >= _POINTS_AT_ONCE:
            yield bundle
            bundle, size = [], 0
    if bundle:
        yield bundle


def _judge_bundle(
    database: Database,
    past: Past,
    bundle: Sequence[Code],
    columns: VerdictColumns,
    *,
    judged_at: datetime,
) -> int:
    """Judge the chosen runs of some codes; gives their number."""
    judged_ids = {run.run_id for code in bundle for run in code.judged}
    others = [run.run_id for code in bundle for run in code.runs if run.run_id not in judged_ids]
    stored: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in load_verdicts(database, run_ids=others):
        stored[verdict.run_id].append(verdict)
    whole = _whole(database, _paired(bundle))
    seen = {
        run.run_id: SeenFrom(past=past, header=run, partner=whole.get(partner_id(run) or "", ()))
        for code in bundle
        for run in code.judged
    }
    quiet = find_quiet(past, _with_those_settled(seen, bundle))
    judged = _judged(database, seen.values(), quiet, whole, judged_at)
    q_value = np.full(quiet.p_value.size, np.nan)
    written: list[tuple[Verdict, float | None]] = []
    for code in bundle:
        decided = Decided(
            settled=_settled(code, judged, stored, past),
            judged=judged,
            stored=stored,
            quiet=quiet,
            points=past.points,
        )
        written += with_q_values(code, decided, q_value)
    columns.add([verdict for verdict, _ in written], [q_value for _, q_value in written])
    for batch in quiet.verdicts(q_value):
        columns.add_columns(batch, judged_at=judged_at)
    return len(judged_ids)


def _paired(bundle: Iterable[Code]) -> set[str]:
    """The runs that were paired, and those they were paired with."""
    runs = [run for code in bundle for run in code.judged]
    return {run_id for run in runs if (other := partner_id(run)) for run_id in (run.run_id, other)}


def _with_those_settled(
    seen: Mapping[str, SeenFrom], bundle: Iterable[Code]
) -> Iterator[tuple[SeenFrom, Collection[int]]]:
    """The runs, each with the series that another session on its commit has too."""
    for code in bundle:
        for gpu_uuid in {run.gpu_uuid for run in code.judged}:
            own = [seen[run.run_id] for run in code.judged if run.gpu_uuid == gpu_uuid]
            settled = code.measured_twice(gpu_uuid, own[0].past.points)
            yield from ((each, settled) for each in own)


def _judged(
    database: Database,
    seen: Collection[SeenFrom],
    quiet: Quiet,
    whole: dict[str, list[SeriesPoint]],
    judged_at: datetime,
) -> dict[str, list[JudgedPoint]]:
    """The points of each run that are not quiet with their verdicts, before they stand beside other sessions.

    Args:
        database: where points are read with their windows.
        seen: the runs.
        quiet: the points that are left out.
        whole: the points of some runs with their windows; more are added where they are needed.
        judged_at: what to write down as the time of judging.
    """
    candidates = {each.header.run_id: _candidates(each, quiet, whole) for each in seen}
    baselines = {
        each.header.run_id: {point.series: each.baseline(point) for point in candidates[each.header.run_id]}
        for each in seen
    }
    whole |= _whole(database, _compared_by_windows(baselines) - whole.keys())
    judged = {}
    for each in seen:
        run_id, rules = each.header.run_id, each.past.rules
        points, told = _candidates(each, quiet, whole), _in_full(each, baselines[run_id], whole)
        judged[run_id] = decide_points(points, told, rules, judged_at=judged_at)
    return judged


def _candidates(
    seen: SeenFrom, quiet: Quiet, whole: Mapping[str, Sequence[SeriesPoint]]
) -> list[SeriesPoint]:
    """The points of a run that are not quiet; with windows where they were read."""
    points, rows = seen.past.points, quiet.others(seen.rows)
    in_full = whole.get(seen.header.run_id)
    if in_full is None:
        return [points.point(row) for row in rows]
    series = {points.series[code] for code in points.series_code[rows].tolist()}
    return [point for point in in_full if point.series in series]


def _whole(database: Database, run_ids: Collection[str]) -> dict[str, list[SeriesPoint]]:
    """The points of some runs with their windows."""
    found: dict[str, list[SeriesPoint]] = defaultdict(list)
    for point in load_points(database, run_ids=sorted(run_ids)):
        found[point.header.run_id].append(point)
    return found


def _compared_by_windows(baselines: Mapping[str, Baselines]) -> set[str]:
    """The runs on both sides of a comparison with a single run: its effect is read off their windows."""
    return {
        run_id
        for candidate, found in baselines.items()
        for baseline in found.values()
        if isinstance(baseline, Baseline) and baseline.kind is BaselineKind.SINGLE
        for run_id in (candidate, baseline.nearest.header.run_id)
    }


def _in_full(seen: SeenFrom, baselines: Baselines, whole: Mapping[str, Sequence[SeriesPoint]]) -> Baselines:
    """The run's baselines, with windows where a single run is what it is compared with."""
    told = dict(baselines)
    for series, baseline in baselines.items():
        if isinstance(baseline, Baseline) and baseline.kind is BaselineKind.SINGLE:
            nearest = seen.renames.points(whole[baseline.nearest.header.run_id])
            # Of two older names of one series in that run, the one that was measured last is its history.
            same = next(point for point in reversed(nearest) if point.series == series)
            told[series] = replace(baseline, points=(same,))
    return told


def _settled(
    code: Code,
    judged: Mapping[str, Sequence[JudgedPoint]],
    stored: Mapping[str, Sequence[Verdict]],
    past: Past,
) -> list[Verdict]:
    """The verdicts on these runs, and those of other sessions whose standing they change."""
    settled: list[Verdict] = []
    by_gpu: dict[str, list[RunHeader]] = defaultdict(list)
    for run in code.judged:
        by_gpu[run.gpu_uuid].append(run)
    for gpu_uuid, runs in by_gpu.items():
        sessions = code.sessions(gpu_uuid)
        items = [judged[run.run_id] for run in runs]
        if len(sessions) > 1:
            others = [verdict for run in sessions for verdict in stored.get(run.run_id, ())]
            settled += settle_sessions(
                items, others, sessions, past.rules, code.resolutions_ms(gpu_uuid, past.points)
            )
        else:  # a flag that has met no other session stands as the judge left it
            settled += [item.verdict for of_run in items for item in of_run]
    return settled
