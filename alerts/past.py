"""What every run of a repository is judged by, read once: the bulk counterpart of ``alerts.gathering``."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from alerts.absence import explain_absence
from alerts.baseline import Baseline, Doubt, is_usable, on_line
from alerts.gathering import baseline_line, reached_runs
from alerts.judge import policy_for, strongest_baseline
from alerts.levels import Landmarks, choose_among, choose_baseline
from alerts.partner import choose_partner, partner_id
from alerts.renames import Renames
from alerts.trunks import Trunk, Trunks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from alerts.policy import Policy, Rules
    from alerts.triage import Decisions
    from store.change_points import ChangePoint
    from store.records import Commit, Failure, RunHeader, SeriesKey, SeriesPoint

_NO_TRUNK = Trunk((), (), {})
_LINES_KEPT = 16  # runs of one commit come one after another


@dataclass(frozen=True, kw_only=True)
class Past:
    """A repository's runs and what divides their history.

    Attributes:
        headers: every run of the repository by its id, newest first.
        points: of each run, in outline where nothing more was asked for.
        failures: of each run that has any.
        released: the name of the release on each commit that has one.
        renamed: declared (old name, new name) pairs.
        steps: as a search of each series found them, by series under its stored name.
    """

    rules: Rules
    headers: Mapping[str, RunHeader]
    points: Mapping[str, Sequence[SeriesPoint]]
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
    def _lines(self) -> dict[tuple[str | None, str | None, bool], dict[str, int]]:
        return {}

    @cached_property
    def _landmarks(self) -> dict[SeriesKey, Landmarks]:
        return {}

    def line(self, first: RunHeader) -> dict[str, int]:
        """As ``baseline_line``, made once for all runs that share it."""
        key = (first.merge_base, None if first.dirty else first.commit_sha, first.commit_sha is None)
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= _LINES_KEPT:  # each is as long as the history
                self._lines.clear()
            found = self._lines[key] = baseline_line(first, self.commits)
        return found

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
        cut = self.decisions.following(renames).cut(series, line, self.commits)
        return Landmarks(
            accepted=None if cut is None else cut.commit_sha, steps=steps, releases=self.released
        )


@dataclass(frozen=True, kw_only=True)
class SeenFrom:
    """A repository's past as one run sees it.

    Attributes:
        candidates: what the run measured.
        partner: what the run that took turns with it measured, with windows.
    """

    past: Past
    header: RunHeader
    candidates: Sequence[SeriesPoint]
    partner: Sequence[SeriesPoint] = ()

    @cached_property
    def line(self) -> dict[str, int]:
        """First-parent distance of every commit that may serve as a baseline."""
        # A base branch may have moved since the run that is confirmed here; its baseline stays.
        first = self.past.headers.get(self.header.confirms_run_id or "", self.header)
        return self.past.line(first)

    @cached_property
    def renames(self) -> Renames:
        """The names that older runs have today."""
        return Renames.of(self.past.renamed, (point.series.case.benchmark for point in self.candidates))

    @cached_property
    def trunk(self) -> Trunk:
        """The line that the run's ancestors lie on."""
        nearest = next(iter(self.line), None)
        return _NO_TRUNK if nearest is None else self.past.trunks.holding(nearest)

    @cached_property
    def first_rank(self) -> int:
        """The rank of the nearest run on the line; the run's own commit is not on it."""
        nearest = next(iter(self.line), None)
        return 0 if nearest is None else self.trunk.rank_from(self.trunk.place[nearest])

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
        nearest = next(iter(self.line), None)
        return nearest is not None and not self.header.dirty and place >= self.trunk.place[nearest]

    @cached_property
    def near(self) -> range:
        """The ranks of those of them that are near, without the ones up to a release."""
        last = self.first_rank + self.past.rules.general.reach_runs
        return range(self.first_rank, min(last, len(self.trunk.runs)))

    @cached_property
    def far(self) -> list[dict[SeriesKey, SeriesPoint]]:
        """The points of those up to a release, by series."""
        runs = self.reached[len(self.near) :]
        return [{point.series: point for point in self.past.points.get(run.run_id, ())} for run in runs]

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
        usable = self.trunk.usable(point.series, self.near, policy)
        if self.far:
            found = (points[point.series] for points in self.far if point.series in points)
            usable = [*usable, *(other for other in found if is_usable(other, policy))]
        return choose_among(usable, self.line, policy, landmarks)

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
        benchmarks = {other.series.case.benchmark for other in self.candidates}
        ours = benchmarks.union(*(self.renames.old_names(name) for name in benchmarks))
        whole = 0
        for run in self.reached:
            points = self.past.points.get(run.run_id, ())
            whole += run.gpu_uuid == self.header.gpu_uuid
            if run.gpu_uuid != self.header.gpu_uuid or whole > self.past.rules.general.pool_size:
                points = [point for point in points if point.series.case.benchmark in ours]
            if points:
                return points
        return ()
