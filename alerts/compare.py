"""Two commits, or two runs, side by side. Nothing is saved."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alerts.absence import other_key, unusable
from alerts.baseline import Baseline, Doubt, form_baseline, is_usable, one_of_each_sitting
from alerts.errors import NothingToJudge
from alerts.excuses import excused
from alerts.judge import SENTINEL, JudgedPoint, RunJudgement, describe_baselines, judge_points, policy_for
from alerts.naming import runs_named
from alerts.partner import choose_partner
from alerts.policy import Policy
from alerts.standing import settle
from store import shown
from store.older_names import Renames
from store.records import Reason
from store.renames import load_renames
from store.runs import load_run
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from alerts.policy import Rules
    from store.database import Database
    from store.records import Failure, RunHeader, SeriesKey, SeriesPoint, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The runs on either side of a comparison, newest first, all on one GPU unless named by id."""

    base: tuple[RunHeader, ...]
    candidate: tuple[RunHeader, ...]

    @property
    def judged(self) -> RunHeader:
        """The newest candidate run; one that confirms another only where there is nothing else."""
        whole = (run for run in self.candidate if run.confirms_run_id is None)
        return next(whole, self.candidate[0])


def compare(
    database: Database,
    base: str,
    candidate: str,
    *,
    gpu: str | None = None,
    checkout: Path,
    rules: Rules | None = None,
) -> RunJudgement:
    """Judge the newest run of one commit against the runs of another on the same GPU.

    Six or more runs of the base commit make a pool, as on any history (of one sitting only the
    newest counts); fewer leave the newest alone. A change is confirmed when another session on the
    candidate also shows it. What one side measured under an older or newer name is compared under
    the candidate's.

    Args:
        database: the store.
        base: the commit or run to compare with; see ``runs_named``.
        candidate: the commit or run that is judged.
        gpu: the GPU's UUID or the beginning of it; the candidate's newest where None.
        checkout: where names such as ``main`` are looked up.
        rules: the thresholds; the defaults where None.

    Raises:
        AlertsError: a side names nothing, or the two have no GPU in common.
        StoreError: the store cannot be read.
    """
    sides = choose_sides(
        runs_named(database, base, checkout=checkout),
        runs_named(database, candidate, checkout=checkout),
        gpu=gpu,
    )
    judgement = _judge_sides(
        sides,
        _points(database, sides.candidate),
        _points(database, sides.base),
        failures=load_run(database, sides.judged.run_id).failures,
        declared=load_renames(database, sides.judged.repository),
        rules=rules or Policy(),
    )
    return excused(database, judgement, at=datetime.now(UTC))


def _judge_sides(
    sides: Sides,
    points: Sequence[SeriesPoint],
    base_points: Sequence[SeriesPoint],
    *,
    failures: tuple[Failure, ...],
    declared: Sequence[tuple[str, str]],
    rules: Rules,
) -> RunJudgement:
    """The candidate side's newest run; the base side is read under the names of the candidate's."""
    failed = {failure.case.benchmark for failure in failures if failure.case is not None}
    base_names = _names(base_points)
    renames = Renames.between(declared, _names(points) | failed, base_names)
    base = renames.points(base_points)
    judged, baselines = _judge_newest(points, sides, base, rules)
    answered = {item.point.series.case for item in judged} | {failure.case for failure in failures}
    expected = {point.series.case for point in base if SENTINEL not in point.tags}
    return RunJudgement(
        header=sides.judged,
        judged=judged,
        failures=failures,
        missing=tuple(sorted(expected - answered, key=lambda case: case.label)),
        baseline=describe_baselines(baselines),
        renamed=tuple(
            (old, item.point.series.case)
            for item in judged
            for old in renames.old_names(item.point.series.case.benchmark)
            if old in base_names
        ),
    )


def _judge_newest(
    points: Sequence[SeriesPoint], sides: Sides, base: Sequence[SeriesPoint], rules: Rules
) -> tuple[tuple[JudgedPoint, ...], list[Baseline | Doubt]]:
    """The newest candidate run, with the standing that the other sessions lend it."""
    moment = datetime.now(UTC)
    sessions: dict[SeriesKey, list[Verdict]] = defaultdict(list)
    judged: dict[str, tuple[JudgedPoint, ...]] = {}
    baselines: dict[str, list[Baseline | Doubt]] = {}
    for header in reversed(sides.candidate):
        own = [point for point in points if point.header.run_id == header.run_id]
        found = {point.series: _baseline(point, base, policy_for(point, rules)) for point in own}
        baselines[header.run_id] = list(found.values())
        judged[header.run_id] = judge_points(own, found, rules, judged_at=moment)
        for item in judged[header.run_id]:
            sessions[item.point.series].append(item.verdict)
    confirms = {run.run_id: run.confirms_run_id for run in sides.candidate if run.confirms_run_id is not None}
    resolutions_ms: dict[SeriesKey, float] = defaultdict(float)
    for point in points:
        resolutions_ms[point.series] = max(resolutions_ms[point.series], point.resolution_ms)
    return tuple(
        replace(
            item,
            verdict=_settled(
                item,
                sessions[item.point.series],
                rules,
                confirms,
                resolution_ms=resolutions_ms[item.point.series],
            ),
        )
        for item in judged[sides.judged.run_id]
    ), baselines[sides.judged.run_id]


def _settled(
    item: JudgedPoint,
    sessions: Sequence[Verdict],
    rules: Rules,
    confirms: Mapping[str, str],
    *,
    resolution_ms: float,
) -> Verdict:
    settled = settle(
        sessions,
        resolution_ms=resolution_ms,
        policy=rules.of(item.point.series.case),
        confirms=confirms,
    )
    return next(verdict for verdict in settled if verdict.run_id == item.verdict.run_id)


def choose_sides(base: Sequence[RunHeader], candidate: Sequence[RunHeader], *, gpu: str | None) -> Sides:
    """Keep the runs that may be compared: committed code, on one GPU that both sides know.

    A run that was named by its id stands alone and is kept whatever it is.

    Raises:
        NothingToJudge: nothing is left; the message names the GPUs of both sides.
    """
    before, after = _committed(base), _committed(candidate)
    common = [run.gpu_uuid for run in after if any(other.gpu_uuid == run.gpu_uuid for other in before)]
    if gpu is not None:
        common = [uuid for uuid in common if uuid.startswith(gpu)]
    if common:
        return Sides(
            base=tuple(run for run in before if run.gpu_uuid == common[0]),
            candidate=tuple(run for run in after if run.gpu_uuid == common[0]),
        )
    if gpu is None and len(before) == len(after) == 1:
        return Sides(base=tuple(before), candidate=tuple(after))  # each verdict then says what differs
    asked = "" if gpu is None else f" that begins with {shown.visible(gpu)}"
    raise NothingToJudge(
        f"the two sides have no GPU in common{asked}: the baseline was measured on {_gpus(before)}, "
        f"the candidate on {_gpus(after)}. Measure the missing one with `collect --commit`"
    )


def _committed(runs: Sequence[RunHeader]) -> list[RunHeader]:
    """Without runs of uncommitted changes, unless that is the only one."""
    return list(runs) if len(runs) == 1 else [run for run in runs if not run.dirty]


def _gpus(runs: Sequence[RunHeader]) -> str:
    return ", ".join(sorted({shown.visible(run.gpu_uuid) for run in runs})) or "no GPU with committed code"


def _points(database: Database, runs: Sequence[RunHeader]) -> list[SeriesPoint]:
    """The points of the runs, in the order of the runs."""
    place = {run.run_id: index for index, run in enumerate(runs)}
    points = load_points(database, run_ids=list(place))
    return sorted(points, key=lambda point: place[point.header.run_id])


def _names(points: Sequence[SeriesPoint]) -> set[str]:
    return {point.series.case.benchmark for point in points}


def _baseline(point: SeriesPoint, base: Sequence[SeriesPoint], policy: Policy) -> Baseline | Doubt:
    partner = choose_partner(point, base, policy)
    if isinstance(partner, Baseline):
        return partner
    others = [other for other in base if other.header.run_id != point.header.run_id]
    same_case = [other for other in others if other.series.case == point.series.case]
    same_series = [other for other in same_case if other.series == point.series]
    usable = [other for other in same_series if is_usable(other, policy)]
    places = one_of_each_sitting([other.header for other in usable])
    if found := form_baseline([usable[place] for place in places], policy):
        return found
    if same_series:
        return unusable(same_series, policy)
    if same_case:
        return other_key(point.series, same_case)
    return Doubt(
        reason=Reason.NEW_BENCHMARK,
        message="the baseline side has no number for it: measure that side with the same suite",
    )
