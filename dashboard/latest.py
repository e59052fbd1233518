"""The latest word on every series and every machine, worst first. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from alerts.order import PLACES, Kind, kind_of, worst_first
from dashboard.timeline import is_on_line
from store.older_names import NO_RENAMES
from store.records import PairedRole

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from store.older_names import Renames
    from store.records import Case, Failure, RunHeader, SeriesPoint, Verdict


class Side(StrEnum):
    """Where a run stands."""

    MAIN = "main line"
    OFF = "off the main line"  # on a branch, or with uncommitted changes


@dataclass(frozen=True, slots=True, kw_only=True)
class LatestRow:
    """The newest word on a benchmark, on the main line or off it.

    Attributes:
        header: of the run that measured it, or in which it failed.
        point: its newest measurement, perhaps of an older run where it failed or is missing.
        verdict: on that measurement.
        failure: why the newest run has no number.
        absent_from: the newest run under the same conditions, where that has no word on it.
    """

    header: RunHeader
    side: Side
    point: SeriesPoint | None = None
    verdict: Verdict | None = None
    failure: Failure | None = None
    absent_from: RunHeader | None = None

    @property
    def kind(self) -> Kind:
        """What there is to say."""
        if self.failure is not None:
            return Kind.FAILED
        return Kind.MISSING if self.absent_from is not None else kind_of(self.verdict)

    @property
    def label(self) -> str:
        """The case, or the file where a whole suite file failed."""
        if self.point is not None:
            return self.point.series.case.label
        if self.failure is not None and self.failure.case is not None:
            return self.failure.case.label
        return self.source

    @property
    def source(self) -> str:
        """File and line."""
        if self.failure is not None:
            return self.failure.source
        return "" if self.point is None else self.point.source

    @property
    def suite(self) -> str:
        """The file of the benchmark."""
        return self.source.rpartition(":")[0] or self.source

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the benchmark, as far as they are known."""
        return () if self.point is None else self.point.tags


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Which rows to keep; an empty filter keeps all. Every word of the text must occur."""

    text: str = ""
    kinds: Sequence[str] = ()
    gpu_uuids: Sequence[str] = ()
    tiers: Sequence[str] = ()
    suites: Sequence[str] = ()
    tags: Sequence[str] = ()
    sides: Sequence[str] = ()
    repositories: Sequence[str] = ()

    def keep(self, row: LatestRow) -> bool:
        """Whether a row passes every filter."""
        label, tier = row.label.casefold(), "" if row.point is None else str(row.point.tier)
        return (
            all(word in label for word in self.text.casefold().split())
            and _among(row.kind, self.kinds)
            and _among(row.header.gpu_uuid, self.gpu_uuids)
            and _among(tier, self.tiers)
            and _among(row.suite, self.suites)
            and (not self.tags or bool(set(self.tags) & set(row.tags)))
            and _among(row.side, self.sides)
            and _among(row.header.repository, self.repositories)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSummary:
    """Where one GPU stands: its newest run, and its rows by kind."""

    header: RunHeader
    side: Side
    counts: Mapping[Kind, int]


def side_of(header: RunHeader, line: frozenset[str]) -> Side:
    """On which side of the main line a run stands."""
    return Side.MAIN if is_on_line(header, line) else Side.OFF


def lately(headers: Iterable[RunHeader], *, per_gpu: int) -> list[RunHeader]:
    """The newest runs of every GPU, so that a busy machine does not hide a quiet one."""
    kept: list[RunHeader] = []
    seen: Counter[str] = Counter()
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        seen[header.gpu_uuid] += 1
        if seen[header.gpu_uuid] <= per_gpu:
            kept.append(header)
    return kept


def own_news(headers: Sequence[RunHeader]) -> list[RunHeader]:
    """Runs that tell where a machine stands; the baseline of a pair only tells what its candidate met.

    It stays where the candidate is not among them.
    """
    known = {header.run_id for header in headers}
    return [
        header
        for header in headers
        if header.paired_role is not PairedRole.BASELINE or header.paired_with not in known
    ]


def newest_runs(headers: Iterable[RunHeader], line: frozenset[str]) -> list[RunHeader]:
    """The newest run of every set of conditions on each side of the main line, newest first.

    A run that measured again what another had flagged says nothing about the rest of its
    suites, and is none of them.
    """
    newest: dict[tuple[object, ...], RunHeader] = {}
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        if header.confirms_run_id is None:
            newest.setdefault((*_conditions(header), side_of(header, line)), header)
    return list(newest.values())


def latest_rows(
    points: Iterable[SeriesPoint],
    verdicts: Mapping[tuple[str, str], Verdict],
    line: frozenset[str],
    *,
    newest: Sequence[RunHeader] = (),
    failures: Mapping[str, Sequence[Failure]] | None = None,
    renames: Mapping[str, Renames] | None = None,
) -> list[LatestRow]:
    """The newest word on every benchmark on each side of the main line, worst first.

    A benchmark that a newer run carries on under another name has no row under the older one.

    Args:
        points: the newest measurement of each series on each side.
        verdicts: by run id and series id.
        line: the main line, see ``dashboard.timeline.main_line``.
        newest: the newest runs, see ``newest_runs``.
        failures: what failed in them, by run id.
        renames: the older names of what they measured, by run id.
    """
    points, failed = list(points), _failed(newest, failures or {})
    answered = {(point.header.run_id, point.series.case) for point in points} | failed.keys()
    standing = {(*_conditions(header), side_of(header, line)): header for header in newest}
    rows, told = [], set()
    for point in points:
        side = side_of(point.header, line)
        current = standing.get((*_conditions(point.header), side))
        newer = current if current is not None and current.started_at > point.header.started_at else None
        if newer is not None and _carried_on(point, newer, answered, renames or {}):
            continue
        failure = failed.get((newer.run_id, point.series.case)) if newer else None
        if newer is not None and failure is not None:
            told.add((newer.run_id, point.series.case))
        rows.append(
            LatestRow(
                header=newer if newer is not None and failure is not None else point.header,
                side=side,
                point=point,
                verdict=verdicts.get((point.header.run_id, point.series.id)),
                failure=failure,
                absent_from=newer if side is Side.MAIN else None,
            )
        )
    rows += [
        LatestRow(header=header, side=side_of(header, line), failure=failure)
        for header in newest
        for failure in (failures or {}).get(header.run_id, ())
        if failure.case is None or (header.run_id, failure.case) not in told
    ]
    return sorted(rows, key=_row_place)


def _failed(
    newest: Iterable[RunHeader], failures: Mapping[str, Sequence[Failure]]
) -> dict[tuple[str, Case], Failure]:
    """What failed in runs, by the run's id and the case."""
    return {
        (header.run_id, failure.case): failure
        for header in newest
        for failure in failures.get(header.run_id, ())
        if failure.case is not None
    }


def _carried_on(
    point: SeriesPoint,
    newer: RunHeader,
    answered: set[tuple[str, Case]],
    renames: Mapping[str, Renames],
) -> bool:
    """Whether a newer run has a word on a point's benchmark under the name that it has there."""
    case = renames.get(newer.run_id, NO_RENAMES).case(point.series.case)
    return case is not point.series.case and (newer.run_id, case) in answered


def summarize(
    headers: Sequence[RunHeader], rows: Iterable[LatestRow], line: frozenset[str]
) -> list[MachineSummary]:
    """Count the rows of every GPU, repository and side by kind; the GPU with the newest run first."""
    newest: dict[tuple[str, str, Side], RunHeader] = {}
    for header in sorted(headers, key=lambda h: h.started_at, reverse=True):
        newest.setdefault((header.gpu_uuid, header.repository, side_of(header, line)), header)
    counts = Counter((row.header.gpu_uuid, row.header.repository, row.side, row.kind) for row in rows)
    return [
        MachineSummary(header=header, side=place[2], counts={kind: counts[(*place, kind)] for kind in Kind})
        for place, header in newest.items()
    ]


def _conditions(header: RunHeader) -> tuple[object, ...]:
    """What two runs must share so that one can miss what the other measured."""
    return (
        header.gpu_uuid, header.repository, header.timer, header.clock_regime, header.environment,
        header.suites,
    )  # fmt: skip


def _among(value: str, chosen: Sequence[str]) -> bool:
    return not chosen or value in chosen


def _row_place(row: LatestRow) -> tuple[int, bool, bool, float, float, str, str]:
    return PLACES[row.kind], *worst_first(row.verdict)[1:], row.label, row.header.gpu_uuid
