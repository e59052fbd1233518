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

from alerts.baseline import Baseline
from alerts.effects import benjamini_hochberg
from alerts.errors import NothingToJudge
from alerts.judge import decide_points
from alerts.judging import confirm_alike, newest_by_gpu, settle_sessions
from alerts.partner import partner_id
from alerts.past import Past, SeenFrom
from alerts.policy import Policy
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
    from store.change_points import ChangePoint
    from store.database import Database
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """The runs of one code, which are settled together.

    Attributes:
        runs: all of them, newest first.
        judged: those that are judged again.
    """

    runs: Sequence[RunHeader]
    judged: Sequence[RunHeader]

    @property
    def has_sessions(self) -> bool:
        """Whether the runs measured the same code. Uncommitted changes are never the same code twice."""
        return self.runs[0].commit_sha is not None and not self.runs[0].dirty

    def sessions(self, gpu_uuid: str) -> list[RunHeader]:
        """The runs on one GPU."""
        return [run for run in self.runs if run.gpu_uuid == gpu_uuid] if self.has_sessions else []


def _past(
    database: Database,
    repository: str,
    headers: Mapping[str, RunHeader],
    points: Mapping[str, Sequence[SeriesPoint]],
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


def _bundles(
    headers: Sequence[RunHeader], chosen: Collection[str], points: Mapping[str, Sequence[SeriesPoint]]
) -> Iterator[list[_Commit]]:
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
            bundle.append(_Commit(runs=runs, judged=judged))
            size += sum(len(points.get(run.run_id, ())) for run in judged)
        if size >= _POINTS_AT_ONCE:
            yield bundle
            bundle, size = [], 0
    if bundle:
        yield bundle


def _judge_bundle(
    database: Database,
    past: Past,
    bundle: Sequence[_Commit],
    columns: VerdictColumns,
    *,
    judged_at: datetime,
) -> int:
    """Judge the chosen runs of some commits; gives their number."""
    headers = [run for commit in bundle for run in commit.judged]
    judged_ids = {run.run_id for run in headers}
    others = [run.run_id for commit in bundle for run in commit.runs if run.run_id not in judged_ids]
    stored: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in load_verdicts(database, run_ids=others):
        stored[verdict.run_id].append(verdict)
    judged = _judged(database, past, headers, judged_at)
    written: list[tuple[Verdict, float | None]] = []
    for commit in bundle:
        written += _with_q_values(commit, _settled(commit, judged, stored, past.rules), judged, stored)
    columns.add([verdict for verdict, _ in written], [q_value for _, q_value in written])
    return len(headers)


def _judged(
    database: Database, past: Past, headers: Sequence[RunHeader], judged_at: datetime
) -> dict[str, list[JudgedPoint]]:
    """The points of each run with their verdicts, before any session stands beside another."""
    pairs = {run_id for run in headers if (other := partner_id(run)) for run_id in (run.run_id, other)}
    whole = _whole(database, pairs)
    seen = [
        SeenFrom(
            past=past,
            header=run,
            candidates=whole.get(run.run_id) or past.points.get(run.run_id, ()),
            partner=whole.get(partner_id(run) or "", ()),
        )
        for run in headers
    ]
    baselines = [{point.series: each.baseline(point) for point in each.candidates} for each in seen]
    whole |= _whole(database, _compared_by_windows(seen, baselines) - whole.keys())
    judged = {}
    for each, found in zip(seen, baselines, strict=True):
        candidates, told = _in_full(each, found, whole)
        judged[each.header.run_id] = decide_points(candidates, told, past.rules, judged_at=judged_at)
    return judged


def _whole(database: Database, run_ids: Collection[str]) -> dict[str, list[SeriesPoint]]:
    """The points of some runs with their windows."""
    found: dict[str, list[SeriesPoint]] = defaultdict(list)
    for point in load_points(database, run_ids=sorted(run_ids)):
        found[point.header.run_id].append(point)
    return found


def _compared_by_windows(seen: Iterable[SeenFrom], baselines: Iterable[Baselines]) -> set[str]:
    """The runs on both sides of a comparison with a single run: its effect is read off their windows."""
    return {
        run_id
        for each, found in zip(seen, baselines, strict=True)
        for baseline in found.values()
        if isinstance(baseline, Baseline) and baseline.kind is BaselineKind.SINGLE
        for run_id in (each.header.run_id, baseline.nearest.header.run_id)
    }


def _in_full(
    seen: SeenFrom, baselines: Baselines, whole: Mapping[str, Sequence[SeriesPoint]]
) -> tuple[Sequence[SeriesPoint], Baselines]:
    """The run's points and baselines, with windows where a single run is what they are compared with."""
    told = dict(baselines)
    for series, baseline in baselines.items():
        if isinstance(baseline, Baseline) and baseline.kind is BaselineKind.SINGLE:
            nearest = seen.renames.points(whole[baseline.nearest.header.run_id])
            # Of two older names of one series in that run, the one that was measured last is its history.
            same = next(point for point in reversed(nearest) if point.series == series)
            told[series] = replace(baseline, points=(same,))
    return whole.get(seen.header.run_id, seen.candidates), told


def _settled(
    commit: _Commit,
    judged: Mapping[str, Sequence[JudgedPoint]],
    stored: Mapping[str, Sequence[Verdict]],
    rules: Rules,
) -> list[Verdict]:
    """The verdicts on these runs, and those of other sessions whose standing they change."""
    settled: list[Verdict] = []
    by_gpu: dict[str, list[RunHeader]] = defaultdict(list)
    for run in commit.judged:
        by_gpu[run.gpu_uuid].append(run)
    for gpu_uuid, runs in by_gpu.items():
        sessions = commit.sessions(gpu_uuid)
        items = [judged[run.run_id] for run in runs]
        if len(sessions) > 1:
            others = [verdict for run in sessions for verdict in stored.get(run.run_id, ())]
            settled += settle_sessions(items, others, sessions, rules)
        else:  # a flag that has met no other session stands as the judge left it
            settled += [item.verdict for of_run in items for item in of_run]
    return settled


def _with_q_values(
    commit: _Commit,
    settled: Iterable[Verdict],
    judged: Mapping[str, Sequence[JudgedPoint]],
    stored: Mapping[str, Sequence[Verdict]],
) -> list[tuple[Verdict, float | None]]:
    """Every verdict to be written with its q-value: over the run, and the commit's newest on other GPUs."""
    current: dict[str, dict[SeriesKey, Verdict]] = defaultdict(dict)
    for run in commit.runs:
        current[run.run_id] |= {verdict.series: verdict for verdict in stored.get(run.run_id, ())}
    for verdict in settled:
        current[verdict.run_id][verdict.series] = verdict
    tested = {
        run.run_id: [
            item.verdict.series
            for item in judged.get(run.run_id, ())
            if not item.is_sentinel and item.verdict.p_value is not None
        ]
        or [v.series for v in stored.get(run.run_id, ()) if v.q_value is not None and v.p_value is not None]
        for run in commit.runs
    }
    q_values = {
        run_id: {series: verdict.q_value for series, verdict in verdicts.items()}
        for run_id, verdicts in current.items()
    }
    for members, told in _families(commit):
        family = [(run_id, series) for run_id in members for series in tested[run_id]]
        p_values = [current[run_id][series].p_value or 0.0 for run_id, series in family]
        for (run_id, series), q_value in zip(family, benjamini_hochberg(p_values), strict=True):
            if run_id in told:
                q_values[run_id][series] = q_value
    before = {(v.run_id, v.series): v for verdicts in stored.values() for v in verdicts}
    return [
        (verdict, q_values[run_id][series])
        for run_id, verdicts in current.items()
        for series, verdict in verdicts.items()
        if (old := before.get((run_id, series))) is None
        or (verdict, q_values[run_id][series]) != (old, old.q_value)
    ]


def _families(commit: _Commit) -> Iterator[tuple[list[str], set[str]]]:
    """Runs whose tests are counted together, and those among them that get their q-values from that.

    A run stands beside the newest ones on other GPUs; these beside it only where it is the newest itself.
    """
    newest = newest_by_gpu(commit.runs) if commit.has_sessions else {}
    whole = set(newest.values())
    for run in commit.judged:
        if run.run_id in whole:
            continue
        alone = not commit.has_sessions or run.confirms_run_id is not None
        others = [] if alone else [run_id for gpu, run_id in newest.items() if gpu != run.gpu_uuid]
        yield [run.run_id, *sorted(others)], {run.run_id}
    if any(run.run_id in whole for run in commit.judged):
        yield sorted(whole), whole
