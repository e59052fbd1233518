"""One GPU over time: what its runs saw of it, its sentinels, and which machine drifts. Pure."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.formatting import gpu_label

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.machines import MachineState
    from store.records import RunHeader, SeriesPoint

_HOST = "host.name"
# With fewer earlier runs nothing is known about how far a sentinel moves by itself.
EARLIER_MIN = 3
# A sentinel drifts where its newest centre lies this many spreads away, and by at least half a percent.
_SPREADS = 4.0
_SHARE_MIN = 0.005
# The median of absolute deviations times this is the standard deviation of a normal spread.
_NORMAL = 1.4826


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelPoint:
    """A sentinel in one run, against the median of its series: 0.01 is 1 % slower."""

    header: RunHeader
    label: str
    place: int
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How far the newest centre of a sentinel lies from its earlier ones.

    Attributes:
        change: (newest - median of the earlier ones) / that median; positive is slower.
        spread: standard deviation of the earlier ones as a share of their median, without outliers.
        earlier: how many there are.
        drifts: whether the change is more than the spread explains; None with too few earlier runs.
    """

    host: str
    header: RunHeader
    label: str
    change: float
    spread: float
    earlier: int
    drifts: bool | None


def host_of(header: RunHeader) -> str:
    """The machine that a run was made on, as far as it is known."""
    reading = header.context.get(_HOST)
    return "unknown" if reading is None or reading.error is not None else str(reading.value)


def machine_names(headers: Iterable[RunHeader]) -> dict[str, str]:
    """A name for each GPU, with the machine of its newest run."""
    names: dict[str, str] = {}
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        label = gpu_label(header.gpu_name, header.gpu_uuid)
        names.setdefault(header.gpu_uuid, f"{label} on {host_of(header)}")
    return names


def in_order(
    headers: Iterable[RunHeader], states: Mapping[str, MachineState]
) -> list[tuple[RunHeader, MachineState]]:
    """The runs that have a state, oldest first, each with it."""
    kept = [(header, states[header.run_id]) for header in headers if header.run_id in states]
    return sorted(kept, key=lambda pair: pair[0].started_at)


def sentinel_points(points: Sequence[SeriesPoint], headers: Sequence[RunHeader]) -> list[SentinelPoint]:
    """Each sentinel of each run against the median of its own series, oldest run first.

    Args:
        points: of sentinels of one GPU; a series of other conditions has a median of its own.
        headers: the runs on the axis, in their order.
    """
    places = {header.run_id: place for place, header in enumerate(headers)}
    return [
        SentinelPoint(
            header=point.header,
            label=point.series.case.label,
            place=places[point.header.run_id],
            change=center / middle - 1,
        )
        for series in _by_series(points).values()
        for middle in [statistics.median(_centers(series))]
        for point in series
        if (center := point.interval.center) is not None and point.header.run_id in places
    ]


def drifts(points: Iterable[SeriesPoint]) -> list[Drift]:
    """The newest centre of every sentinel against its earlier ones on the same GPU, worst first."""
    found = []
    for series in _by_series(points).values():
        *earlier, newest = [point for point in series if point.interval.center is not None]
        if not earlier:
            continue
        centers = _centers(earlier)
        middle = statistics.median(centers)
        spread = _NORMAL * statistics.median(abs(center / middle - 1) for center in centers)
        change = (newest.interval.center or middle) / middle - 1
        enough = len(earlier) >= EARLIER_MIN
        found.append(
            Drift(
                host=host_of(newest.header),
                header=newest.header,
                label=newest.series.case.label,
                change=change,
                spread=spread,
                earlier=len(earlier),
                drifts=abs(change) > max(_SPREADS * spread, _SHARE_MIN) if enough else None,
            )
        )
    return sorted(found, key=lambda drift: (not drift.drifts, -abs(drift.change)))


def _by_series(points: Iterable[SeriesPoint]) -> dict[str, list[SeriesPoint]]:
    """The points with a number, by series, oldest first."""
    series: dict[str, list[SeriesPoint]] = defaultdict(list)
    for point in sorted(points, key=lambda p: p.header.started_at):
        if point.interval.center is not None:
            series[point.series.id].append(point)
    return series


def _centers(points: Iterable[SeriesPoint]) -> list[float]:
    return [point.interval.center for point in points if point.interval.center is not None]
