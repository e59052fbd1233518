"""Any two sides beside one another: which measurements of one have a partner on the other. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.differences import Difference, Direction, difference

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import Case, SeriesPoint

_PLACES = {
    direction: place
    for place, direction in enumerate((Direction.SLOWER, Direction.FASTER, Direction.SAME, Direction.UNKNOWN))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two sides.

    Attributes:
        differences: of what both measured under the same conditions; slower first, then faster.
        only_base, only_candidate: cases that the other side has no partner for, by name.
    """

    differences: tuple[Difference, ...]
    only_base: tuple[Case, ...]
    only_candidate: tuple[Case, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which differences to keep; an empty filter keeps all."""

    text: str = ""
    directions: Sequence[str] = ()
    tags: Sequence[str] = ()
    tiers: Sequence[str] = ()

    def keep(self, item: Difference) -> bool:
        """Whether a difference passes every filter; of the two tiers the lower one counts."""
        label = item.candidate.series.case.label.casefold()
        return (
            all(word in label for word in self.text.casefold().split())
            and (not self.directions or item.direction in self.directions)
            and (not self.tags or bool(set(self.tags) & set(item.candidate.tags)))
            and (not self.tiers or tier_of(item) in self.tiers)
        )


def tier_of(item: Difference) -> str:
    """The lower tier of the two sides."""
    return str(max(item.base.tier, item.candidate.tier))


def compare(
    base: Iterable[SeriesPoint],
    candidate: Iterable[SeriesPoint],
    *,
    across_gpus: bool = False,
    across_environments: bool = False,
) -> Comparison:
    """Pair the measurements of two sides that share their conditions.

    Timer, quantity, cache state and clock regime are always shared; GPU and environment are,
    unless the person who asks has chosen one on each side. Of several measurements of a side
    under the same conditions the newest counts.
    """

    def conditions(point: SeriesPoint) -> tuple[object, ...]:
        series = point.series
        return (
            series.case, series.quantity, series.timer, series.cache_state, series.clock_regime,
            None if across_gpus else series.gpu_uuid,
            None if across_environments else series.environment,
        )  # fmt: skip

    def newest(points: Iterable[SeriesPoint]) -> dict[tuple[object, ...], SeriesPoint]:
        return {conditions(p): p for p in sorted(points, key=lambda p: p.header.started_at)}

    before, after = newest(base), newest(candidate)
    both = [difference(before[key], after[key]) for key in after if key in before]
    return Comparison(
        differences=tuple(sorted(both, key=_place)),
        only_base=_cases(point for key, point in before.items() if key not in after),
        only_candidate=_cases(point for key, point in after.items() if key not in before),
    )


def _cases(points: Iterable[SeriesPoint]) -> tuple[Case, ...]:
    return tuple(sorted({point.series.case for point in points}, key=lambda case: case.label))


def _place(item: Difference) -> tuple[int, float, str]:
    return _PLACES[item.direction], -abs(item.effect or 0.0), item.candidate.series.case.label
