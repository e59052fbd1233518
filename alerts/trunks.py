"""First-parent lines with the runs on them, sorted once for however many runs are judged along them: pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from alerts.baseline import distance
from alerts.policy import reaches
from store.commits import first_parent_line, positions
from store.outlines import TIERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from store.outlines import Outlines
    from store.records import Commit, RunHeader, Tier


@dataclass(frozen=True)
class Usable:
    """What may be part of a baseline along a line, by series and from its tip on.

    Attributes:
        rows: of the outlines; those of one series one after another.
        ranks: for each of them the rank of its run on the line.
        begin: by series, where its rows begin; one more than there are series.
    """

    rows: NDArray[np.intp]
    ranks: NDArray[np.intp]
    begin: NDArray[np.intp]

    def places(self, series: int, near: range, far: Sequence[int]) -> NDArray[np.intp]:
        """Where among ``rows`` a series lies in some runs, nearest first.

        Args:
            series: its number.
            near: the ranks of runs one after another.
            far: the ranks of single runs behind them, in order. None of them need have the series.
        """
        begin, end = self.begin[series], self.begin[series + 1]
        own = self.ranks[begin:end]
        first, last = np.searchsorted(own, (near.start, near.stop))
        places: NDArray[np.intp] = np.arange(first, last) + begin
        if far and own.size:
            found = np.minimum(np.searchsorted(own, far), own.size - 1)
            places = np.concatenate([places, found[own[found] == far] + begin])
        return places

    @cached_property
    def pattern(self) -> NDArray[np.intp]:
        """By series, a number that those share which were measured in the same runs."""
        known: dict[bytes, int] = {}
        edges = zip(self.begin[:-1], self.begin[1:], strict=True)
        ranks = (self.ranks[first:last].tobytes() for first, last in edges)
        return np.array([known.setdefault(own, len(known)) for own in ranks], dtype=np.intp)


class Rest(Mapping[str, int]):
    """A line from one of its commits on: how far from there each of the rest lies, without a copy of them."""

    def __init__(
        self, place: Mapping[str, int], line: Sequence[str], first: str, without: str | None
    ) -> None:
        self._place, self._line, self._begin, self._without = place, line, place[first], without

    def __getitem__(self, sha: str) -> int:
        distance = self._place[sha] - self._begin
        if distance < 0 or sha == self._without:
            raise KeyError(sha)
        return distance

    def __contains__(self, sha: object) -> bool:
        return sha != self._without and self._place.get(str(sha), -1) >= self._begin

    def __iter__(self) -> Iterator[str]:
        return (sha for sha in islice(self._line, self._begin, None) if sha != self._without)

    def __len__(self) -> int:
        return len(self._line) - self._begin - (self._place.get(self._without or "", -1) >= self._begin)


class Trunk:
    """One line with its runs, nearest to the tip first.

    The line of a merge-base on it is the rest of it from there on, and so are the runs: what
    was sorted for one commit need not be sorted again for the next.

    Attributes:
        line: its commits, from the tip on.
        place: of each of them.
        runs: of committed code on the line; their indices are called ranks.
        rank: of each of them by its id.
    """

    def __init__(self, line: Sequence[str], headers: Iterable[RunHeader], points: Outlines) -> None:
        self.line = line
        self.place = {sha: index for index, sha in enumerate(line)}
        on_it = (run for run in headers if not run.dirty and run.commit_sha in self.place)
        self.runs = sorted(on_it, key=lambda run: distance(run, self.place))
        self.rank = {run.run_id: rank for rank, run in enumerate(self.runs)}
        self._starts = [self.place[run.commit_sha or ""] for run in self.runs]
        self._points = points
        self._usable: dict[Tier, Usable] = {}

    def rest(self, merge_base: str, *, without: str | None) -> Rest:
        """The line from a commit on, on which all but one commit may serve as a baseline."""
        return Rest(self.place, self.line, merge_base, without)

    def rank_from(self, place: int) -> int:
        """The rank of the first run at a place of the line, or behind it."""
        return bisect_left(self._starts, place)

    def usable(self, minimum: Tier) -> Usable:
        """The rows of every series on the line that may be part of a baseline."""
        known = self._usable.get(minimum)
        if known is None:
            known = self._usable[minimum] = self._sorted(minimum)
        return known

    def _sorted(self, minimum: Tier) -> Usable:
        points = self._points
        rank_of = np.array([self.rank.get(run.run_id, -1) for run in points.headers], dtype=np.intp)
        is_good = np.array([reaches(tier, minimum) for tier in TIERS])
        ranks = rank_of[points.run]
        rows = np.flatnonzero((ranks >= 0) & points.has_bounds & is_good[points.tier])
        rows = rows[np.lexsort((ranks[rows], points.series_code[rows]))]
        begin = np.searchsorted(points.series_code[rows], np.arange(len(points.series) + 1))
        return Usable(rows, ranks[rows], begin)


class Trunks:
    """The lines of a repository: as few as hold every merge-base.

    Attributes:
        nowhere: a line without a commit.
    """

    def __init__(self, headers: Sequence[RunHeader], commits: Mapping[str, Commit], points: Outlines) -> None:
        depth = positions(commits)
        tips = {run.merge_base for run in headers if run.merge_base is not None}
        self._of: dict[str, Trunk] = {}
        self.nowhere = Trunk((), (), points)
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
