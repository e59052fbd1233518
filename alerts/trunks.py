"""First-parent lines with the runs on them, sorted once for however many runs are judged along them: pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import TYPE_CHECKING

from alerts.baseline import distance, is_usable
from store.commits import first_parent_line, positions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from alerts.policy import Policy
    from store.records import Commit, RunHeader, SeriesKey, SeriesPoint, Tier


class Trunk:
    """One line, its runs nearest to the tip first, and the points of each series in that order.

    The line of a merge-base on it is the rest of it from there on, and so are the runs: what
    was sorted for one commit need not be sorted again for the next.

    Attributes:
        runs: of committed code on the line.
        starts: for each of them its place on the line.
    """

    def __init__(
        self,
        line: Iterable[str],
        headers: Iterable[RunHeader],
        points: Mapping[str, Sequence[SeriesPoint]],
    ) -> None:
        self.place = {sha: index for index, sha in enumerate(line)}
        on_it = (run for run in headers if not run.dirty and run.commit_sha in self.place)
        self.runs = sorted(on_it, key=lambda run: distance(run, self.place))
        self.starts = [self.place[run.commit_sha or ""] for run in self.runs]
        self._ranked: dict[SeriesKey, list[tuple[int, SeriesPoint]]] = defaultdict(list)
        for rank, run in enumerate(self.runs):
            for point in points.get(run.run_id, ()):
                self._ranked[point.series].append((rank, point))
        self._usable: dict[tuple[SeriesKey, Tier], tuple[list[int], list[SeriesPoint]]] = {}

    def rank_from(self, place: int) -> int:
        """The rank of the first run at a place of the line, or behind it."""
        return bisect_left(self.starts, place)

    def usable(self, series: SeriesKey, ranks: range, policy: Policy) -> list[SeriesPoint]:
        """The points of a series in the runs of these ranks that may be part of a baseline, nearest first."""
        known = self._usable.get((series, policy.minimum_tier))
        if known is None:
            kept = [item for item in self._ranked.get(series, ()) if is_usable(item[1], policy)]
            known = [rank for rank, _ in kept], [point for _, point in kept]
            self._usable[series, policy.minimum_tier] = known
        places, points = known
        return points[bisect_left(places, ranks.start) : bisect_left(places, ranks.stop)]


class Trunks:
    """The lines of a repository: as few as hold every merge-base."""

    def __init__(
        self,
        headers: Sequence[RunHeader],
        commits: Mapping[str, Commit],
        points: Mapping[str, Sequence[SeriesPoint]],
    ) -> None:
        depth = positions(commits)
        tips = {run.merge_base for run in headers if run.merge_base is not None}
        self._of: dict[str, Trunk] = {}
        for tip in sorted(tips, key=lambda sha: (-depth.get(sha, 0), sha)):
            if tip in self._of:
                continue
            line = [commit.sha for commit in first_parent_line(commits, tip)] or [tip]
            trunk = Trunk(line, headers, points)
            for sha in trunk.place:
                self._of.setdefault(sha, trunk)

    def holding(self, merge_base: str) -> Trunk:
        """A line on which the commit lies, with all that comes before it."""
        return self._of[merge_base]
