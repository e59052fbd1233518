"""The latest word on every series and every machine, worst first. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dashboard.timeline import is_on_line
from store.records import Outcome, Standing, Tier

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.records import RunHeader, SeriesPoint, Verdict

NOT_JUDGED = "NOT JUDGED"
OUTCOMES = (*map(str, Outcome), NOT_JUDGED)
# Worst first; within a place the larger effect comes first.
_PLACES = {
    (Outcome.REGRESSED, Standing.CONFIRMED): 0,
    (Outcome.REGRESSED, Standing.FLAGGED): 1,
    (Outcome.REGRESSED, Standing.NONE): 1,
    (Outcome.IMPROVED, Standing.CONFIRMED): 2,
    (Outcome.IMPROVED, Standing.FLAGGED): 3,
    (Outcome.IMPROVED, Standing.NONE): 3,
    (Outcome.REGRESSED, Standing.WITHDRAWN): 4,
    (Outcome.IMPROVED, Standing.WITHDRAWN): 4,
}
_PLACE_OF_DOUBT, _PLACE_OF_NO_VERDICT, _PLACE_OF_NO_CHANGE = 5, 6, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRow:
    """The newest measurement of a series, on the main line or off it, with its verdict."""

    point: SeriesPoint
    verdict: Verdict | None
    on_line: bool

    @property
    def outcome(self) -> str:
        """The outcome of the verdict, or that there is none."""
        return NOT_JUDGED if self.verdict is None else str(self.verdict.outcome)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSummary:
    """A run in one line.

    Attributes:
        counts: measurements by outcome, in the order of ``OUTCOMES``.
        n_failed: benchmarks and suite files that gave no number.
    """

    header: RunHeader
    on_line: bool
    counts: Mapping[str, int]
    n_failed: int


def newest_runs(headers: Iterable[RunHeader], line: frozenset[str]) -> list[RunHeader]:
    """The newest run of every GPU, repository and side of the main line, newest first."""
    newest: dict[tuple[str, str, bool], RunHeader] = {}
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        newest.setdefault((header.gpu_uuid, header.repository, is_on_line(header, line)), header)
    return list(newest.values())


def lately(headers: Iterable[RunHeader], *, per_gpu: int) -> list[RunHeader]:
    """The newest runs of every GPU, so that a busy machine does not hide a quiet one."""
    kept: list[RunHeader] = []
    seen: Counter[str] = Counter()
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        seen[header.gpu_uuid] += 1
        if seen[header.gpu_uuid] <= per_gpu:
            kept.append(header)
    return kept


def latest_rows(
    points: Iterable[SeriesPoint], verdicts: Mapping[tuple[str, str], Verdict], line: frozenset[str]
) -> list[LatestRow]:
    """The newest measurement of every series on each side of the main line, worst first."""
    newest: dict[tuple[str, bool], LatestRow] = {}
    for point in sorted(points, key=lambda p: p.header.started_at, reverse=True):
        on_line = is_on_line(point.header, line)
        newest.setdefault(
            (point.series.id, on_line),
            LatestRow(
                point=point,
                verdict=verdicts.get((point.header.run_id, point.series.id)),
                on_line=on_line,
            ),
        )
    return sorted(newest.values(), key=_worst_first)


def keep(
    rows: Iterable[LatestRow],
    *,
    text: str = "",
    gpu_uuids: Sequence[str] = (),
    tiers: Sequence[str] = (),
    outcomes: Sequence[str] = (),
) -> list[LatestRow]:
    """The rows that pass every filter; an empty filter passes all. Every word of the text must occur."""
    words = text.casefold().split()
    return [
        row
        for row in rows
        if all(word in row.point.series.case.label.casefold() for word in words)
        and (not gpu_uuids or row.point.series.gpu_uuid in gpu_uuids)
        and (not tiers or row.point.tier in map(Tier, tiers))
        and (not outcomes or row.outcome in outcomes)
    ]


def summarize(
    header: RunHeader,
    *,
    line: frozenset[str],
    points: Iterable[SeriesPoint],
    verdicts: Mapping[tuple[str, str], Verdict],
    n_failed: int,
) -> RunSummary:
    """Count the outcomes of one run; what was measured and not judged counts as such."""
    counts = dict.fromkeys(OUTCOMES, 0)
    for point in points:
        if point.header.run_id == header.run_id:
            verdict = verdicts.get((header.run_id, point.series.id))
            counts[NOT_JUDGED if verdict is None else str(verdict.outcome)] += 1
    return RunSummary(header=header, on_line=is_on_line(header, line), counts=counts, n_failed=n_failed)


def worst_first(verdict: Verdict | None) -> tuple[int, float]:
    """The place of a verdict in a list that begins with the worst news."""
    if verdict is None:
        return _PLACE_OF_NO_VERDICT, 0.0
    effect = abs(verdict.effect or 0.0)
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return _PLACE_OF_DOUBT, -effect
    return _PLACES.get((verdict.outcome, verdict.standing), _PLACE_OF_NO_CHANGE), -effect


def _worst_first(row: LatestRow) -> tuple[int, float, str, str]:
    return *worst_first(row.verdict), row.point.series.case.label, row.point.series.gpu_uuid
