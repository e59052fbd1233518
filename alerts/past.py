"""What every run of a repository is judged by, read once: the bulk counterpart of ``alerts.gathering``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from alerts.absence import explain_absence
from alerts.baseline import SENTINEL, Baseline, Doubt, on_line
from alerts.gathering import reached_runs
from alerts.judge import policy_by, policy_for, strongest_baseline
from alerts.levels import Behind, Landmarks, choose_baseline, divide, form
from alerts.partner import choose_partner, partner_id
from alerts.trunks import Trunks
from store.commits import merges_of
from store.older_names import Renames

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from alerts.policy import Policy, Rules
    from alerts.triage import Decisions
    from alerts.trunks import Trunk
    from store.change_points import ChangePoint
    from store.outlines import Outlines
    from store.records import Commit, Failure, RunHeader, SeriesKey, SeriesPoint


@dataclass(frozen=True, kw_only=True)
class Past:
    """A repository's runs and what divides their history.

    Attributes:
        headers: every run of the repository by its id, newest first.
        points: of each run, in outline.
        failures: of each run that has any.
        released: the name of the release on each commit that has one.
        renamed: declared (old name, new name) pairs.
        steps: as a search of each series found them, by series under its stored name.
    """

    rules: Rules
    headers: Mapping[str, RunHeader]
    points: Outlines
    failures: Mapping[str, tuple[Failure, ...]]
    commits: Mapping[str, Commit]
    released: Mapping[str, str]
    renamed: Sequence[tuple[str, str]]
    decisions: Decisions
    steps: Mapping[SeriesKey, Sequence[ChangePoint]]

    @cached_property
    def trunks(self) -> Trunks:
        """The lines that the merge-bases lie on."""
        return Trunks(list(self.headers.values()), self.commits, self.points)

    @cached_property
    def merges(self) -> Mapping[str, Sequence[str]]:
        """By commit, the merges that brought it in."""
        return merges_of(self.commits)

    @cached_property
    def policies(self) -> tuple[NDArray[np.intp], list[Policy]]:
        """By row of the outlines the number of the policy that decides about it, and the policies."""
        points = self.points
        pairs, rows = np.unique(points.series_code * len(points.tag_sets) + points.tags, return_inverse=True)
        known: dict[Policy, int] = {}
        numbers = []
        for pair in pairs.tolist():
            series, tags = divmod(pair, len(points.tag_sets))
            policy = policy_by(points.series[series].case, points.tag_sets[tags], self.rules)
            numbers.append(known.setdefault(policy, len(known)))
        return np.array(numbers, dtype=np.intp)[rows], list(known)

    @cached_property
    def is_sentinel(self) -> NDArray[np.bool_]:
        """By row of the outlines, whether it is one of the tool's own calls."""
        points = self.points
        return np.array([SENTINEL in tags for tags in points.tag_sets], dtype=np.bool_)[points.tags]

    @cached_property
    def is_divided(self) -> NDArray[np.bool_]:
        """By series, whether more than releases divides its history."""
        decided = self.decisions.by_benchmark
        return np.array(
            [key in self.steps or key.case.benchmark in decided for key in self.points.series], dtype=np.bool_
        )

    @cached_property
    def _landmarks(self) -> dict[SeriesKey, Landmarks]:
        return {}

    def line(self, first: RunHeader) -> Mapping[str, int]:
        """As ``baseline_line``, without a copy of the history."""
        if first.commit_sha is None or first.merge_base is None:
            return {}
        own = None if first.dirty else first.commit_sha
        return self.trunks.holding(first.merge_base).rest(first.merge_base, without=own)

    def landmarks(self, series: SeriesKey, line: Mapping[str, int], renames: Renames) -> Landmarks:
        """What divides the history of a series, seen from where the line begins."""
        old_names = renames.old_names(series.case.benchmark) if renames.today else []
        names = [series.case.benchmark, *old_names]
        if not old_names and not any(name in self.decisions.by_benchmark for name in names):
            found = self._landmarks.get(series)
            if found is None:
                steps = tuple(self.steps.get(series, ()))
                found = self._landmarks[series] = Landmarks(steps=steps, releases=self.released)
            return found
        steps = tuple(
            step
            for key, own in self.steps.items()
            if key.case.benchmark in names and renames.series(key) == series
            for step in own
        )
        cut = self.decisions.following(renames).cut(series, line, self.merges)
        return Landmarks(
            accepted=None if cut is None else cut.commit_sha, steps=steps, releases=self.released
        )


@dataclass(frozen=True, kw_only=True)
class SeenFrom:
    """A repository's past as one run sees it.

    Attributes:
        partner: what the run that took turns with it measured, with windows.
    """

    past: Past
    header: RunHeader
    partner: Sequence[SeriesPoint] = ()

    @cached_property
    def rows(self) -> range:
        """What it measured, as rows of the outlines."""
        return self.past.points.rows(self.header.run_id)

    @cached_property
    def benchmarks(self) -> set[str]:
        """The names of what it measured."""
        points, part = self.past.points, slice(self.rows.start, self.rows.stop)
        return {points.series[code].case.benchmark for code in points.series_code[part].tolist()}

    @cached_property
    def line(self) -> Mapping[str, int]:
        """First-parent distance of every commit that may serve as a baseline."""
        # A base branch may have moved since the run that is confirmed here; its baseline stays.
        first = self.past.headers.get(self.header.confirms_run_id or "", self.header)
        return self.past.line(first)

    @cached_property
    def nearest(self) -> str | None:
        """The first commit on the line."""
        return next(iter(self.line), None)

    @cached_property
    def renames(self) -> Renames:
        """The names that older runs have today."""
        return Renames.of(self.past.renamed, self.benchmarks)

    @cached_property
    def trunk(self) -> Trunk:
        """The line that the run's ancestors lie on."""
        return self.past.trunks.nowhere if self.nearest is None else self.past.trunks.holding(self.nearest)

    @cached_property
    def first_rank(self) -> int:
        """The rank of the nearest run on the line; the run's own commit is not on it."""
        return 0 if self.nearest is None else self.trunk.rank_from(self.trunk.place[self.nearest])

    @cached_property
    def reached(self) -> list[RunHeader]:
        """The runs to look at, nearest first."""
        behind = self.trunk.runs[self.first_rank :]
        if self.is_interrupted:
            behind = [run for run in behind if on_line(self.header, run, self.line)]
        return reached_runs(self.header, behind, self.line, self.past.released, self.past.rules.general)

    @cached_property
    def is_interrupted(self) -> bool:
        """Whether runs on the judged commit lie between those it is judged by, instead of before them."""
        place = self.trunk.place.get(self.header.commit_sha or "", -1)
        behind = self.nearest is not None and place >= self.trunk.place[self.nearest]
        return behind and not self.header.dirty

    @cached_property
    def near(self) -> range:
        """The ranks of those of them that are near, without the ones up to a release."""
        last = self.first_rank + self.past.rules.general.reach_runs
        return range(self.first_rank, min(last, len(self.trunk.runs)))

    @cached_property
    def far(self) -> list[int]:
        """The ranks of those up to a release."""
        if not self.past.released:
            return []
        return [self.trunk.rank[run.run_id] for run in self.reached[len(self.near) :]]

    def behind(self, rows: NDArray[np.intp]) -> Behind:
        """The runs that some of these rows belong to, which may serve as a baseline."""
        points = self.past.points
        return Behind.of([points.headers[run] for run in points.run[rows].tolist()], self.line)

    @cached_property
    def paired(self) -> list[SeriesPoint]:
        """The points of the run that took turns with this one."""
        return self.renames.points(self.partner)

    def baseline(self, point: SeriesPoint) -> Baseline | Doubt:
        """As the judge of one run finds it."""
        policy = policy_for(point, self.past.rules)
        failures = self.past.failures.get(partner_id(self.header) or "", ())
        return strongest_baseline(
            self.header,
            choose_partner(point, self.paired, policy, failures),
            choose=lambda: self._choose(point, policy),
            explain=lambda: explain_absence(point, self._around(point), self.line, policy),
        )

    def _choose(self, point: SeriesPoint, policy: Policy) -> Baseline | None:
        landmarks = self.past.landmarks(point.series, self.line, self.renames)
        old_names = self.renames.old_names(point.series.case.benchmark) if self.renames.today else []
        if old_names or self.is_interrupted:
            return choose_baseline(point, self._renamed(point), self.line, policy, landmarks)
        usable = self.trunk.usable(policy.minimum_tier)
        rows = usable.rows[usable.places(self.past.points.number[point.series], self.near, self.far)]
        behind = self.behind(rows)
        division = divide(behind, policy, landmarks)
        if division is None:
            return None
        return form(division, lambda place: self.past.points.point(int(rows[behind.kept[place]])), policy)

    def _renamed(self, point: SeriesPoint) -> list[SeriesPoint]:
        """The history of a series under all of its names; of one run, in the order it was measured in."""
        return [
            other
            for run in self.reached
            for other in self.renames.points(self._of_benchmark(run, point.series.case.benchmark))
            if other.series == point.series
        ]

    def _of_benchmark(self, run: RunHeader, benchmark: str) -> list[SeriesPoint]:
        names = {benchmark, *self.renames.old_names(benchmark)}
        points = self.past.points.get(run.run_id, ())
        return [point for point in points if point.series.case.benchmark in names]

    def _around(self, point: SeriesPoint) -> list[SeriesPoint]:
        """What tells why a series has no baseline: its benchmark, however measured, and the nearest run."""
        benchmark = point.series.case.benchmark
        same = [other for run in self.reached for other in self._of_benchmark(run, benchmark)]
        return self.renames.points([*same, *self._nearest])

    @cached_property
    def _nearest(self) -> Sequence[SeriesPoint]:
        """The points of the nearest run: on another GPU, or far back, of our benchmarks alone."""
        ours = self.benchmarks.union(*(self.renames.old_names(name) for name in self.benchmarks))
        whole = 0
        for run in self.reached:
            points = self.past.points.get(run.run_id, ())
            whole += run.gpu_uuid == self.header.gpu_uuid
            if run.gpu_uuid != self.header.gpu_uuid or whole > self.past.rules.general.pool_size:
                points = [point for point in points if point.series.case.benchmark in ours]
            if points:
                return points
        return ()
