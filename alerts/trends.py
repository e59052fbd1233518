"""How a series went up to the run that is judged: as numbers, as a row of characters, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from store import shown
from store.records import BaselineKind, Outcome, Standing
from store.series import load_points

if TYPE_CHECKING:
    from collections.abc import Sequence

    from alerts.judge import JudgedPoint, RunJudgement
    from store.database import Database
    from store.records import SeriesPoint

_BARS = "\u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
SHOWN_MAX = 5
_POINTS_MIN = 4  # two or three points show nothing that the table does not say
_POINTS_MAX = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """What a changed series was compared with, and where it is now.

    Attributes:
        points: oldest first; the last is what is judged.
        picture_url: where a picture of it can be fetched, or None.
    """

    label: str
    points: tuple[SeriesPoint, ...]
    picture_url: str | None = None

    @property
    def sparkline(self) -> str:
        """One character for each point, from the lowest to the highest of the series."""
        centers = [point.interval.center for point in self.points[-_POINTS_MAX:]]
        known = [center for center in centers if center is not None]
        low, span = min(known), (max(known) - min(known)) or 1.0
        steps = len(_BARS) - 1
        return "".join(" " if c is None else _BARS[round((c - low) / span * steps)] for c in centers)

    @property
    def words(self) -> str:
        """The same in words: how many runs, and what the judged one says."""
        last = self.points[-1]
        now = shown.interval(last.interval, last.series.quantity)
        return f"{shown.count(len(self.points) - 1, 'baseline run')}, then this run at {now}"


def load_trends(database: Database, judgement: RunJudgement) -> dict[str, Trend]:
    """The trends of the worst confirmed regressions, by series id, where there are enough points."""
    found = {}
    worst = sorted(
        (item for item in judgement.judged if _is_worth_one(item)),
        key=lambda item: -(item.verdict.effect or 0.0),
    )
    for item in worst[:SHOWN_MAX]:
        points = _points(database, item)
        if sum(point.interval.center is not None for point in points) >= _POINTS_MIN:
            label = item.point.series.case.label
            found[item.point.series.id] = Trend(label=label, points=tuple(points))
    return found


def _is_worth_one(item: JudgedPoint) -> bool:
    verdict = item.verdict
    return (
        verdict.outcome is Outcome.REGRESSED
        and verdict.standing is Standing.CONFIRMED
        and verdict.baseline_kind is not BaselineKind.NONE
        and not item.is_sentinel
    )


def _points(database: Database, item: JudgedPoint) -> Sequence[SeriesPoint]:
    runs = list(item.verdict.baseline_run_ids)
    place = {run_id: index for index, run_id in enumerate(runs)}
    before = load_points(database, run_ids=runs, series_ids=[item.point.series.id])
    before.sort(key=lambda point: -place[point.header.run_id])  # the baseline names the nearest first
    return [*before, item.point]
