"""Series: the measurements of one key over commits, as judges and charts need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from store.filters import only
from store.headers import HEADER_COLUMNS, header_of
from store.records import Kernel, RunHeader, SeriesKey, SeriesPoint, Tier
from store.rows import Row, fetch_rows, interval_of, series_of
from store.runs import kernel_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.database import Database

# Every statement starts from the same choice of measurements; none reads a list of samples.
_CHOSEN = """
with chosen as (
    select measurements.*, runs.started_at, runs.gpu_uuid, runs.timer, runs.clock_regime, runs.environment
    from measurements join runs on runs.run_id = measurements.run_id
    {where}
    {newest}
)
"""
_NEWEST = """qualify row_number() over (
    partition by measurements.series_id, runs.repository order by runs.started_at desc, runs.run_id
) = 1"""
_HEADERS = "select {columns} from runs where runs.run_id in (select run_id from chosen)"
_KERNELS = """
select kernels.* from kernels join chosen
on chosen.run_id = kernels.run_id and chosen.measurement_index = kernels.measurement_index
order by kernels.run_id, kernels.measurement_index, kernels.kernel_index
"""
_POINTS = """
select chosen.*, folded.medians_ms, folded.passes_counted, coalesce(folded.n_samples, 0) as n_samples,
    coalesce(folded.n_left_out, 0) as n_left_out
from chosen left join (
    select windows.run_id, windows.measurement_index,
        list(median_ms order by windows.pass_index, windows.window_index)
            filter (where invalid is null and n_kept > 0) as medians_ms,
        list(windows.pass_index order by windows.pass_index, windows.window_index)
            filter (where invalid is null and n_kept > 0) as passes_counted,
        sum(case when invalid is null then n_kept else 0 end)::bigint as n_samples,
        sum(case when invalid is null then n - n_kept else n end)::bigint as n_left_out
    from windows join chosen
    on chosen.run_id = windows.run_id and chosen.measurement_index = windows.measurement_index
    group by windows.run_id, windows.measurement_index
) as folded
on folded.run_id = chosen.run_id and folded.measurement_index = chosen.measurement_index
order by chosen.started_at, chosen.run_id, chosen.measurement_index
"""
_CENTERS = """
select measurements.series_id, runs.repository,
    list(runs.run_id order by runs.started_at, runs.run_id) as run_ids,
    list(measurements.center_ms order by runs.started_at, runs.run_id) as centers
from measurements join runs on runs.run_id = measurements.run_id
{where} and measurements.center_ms is not null
group by measurements.series_id, runs.repository
"""


def load_points(
    database: Database,
    *,
    run_ids: Sequence[str] | None = None,
    series_ids: Sequence[str] | None = None,
    benchmarks: Sequence[str] | None = None,
    gpu_uuids: Sequence[str] | None = None,
    tag: str | None = None,
) -> list[SeriesPoint]:
    """Measurements without their samples, oldest run first.

    Args:
        database: the store.
        run_ids: only these runs, by their whole ids; None for all.
        series_ids: only these series; None for all.
        benchmarks: only these benchmarks; None for all.
        gpu_uuids: only these GPUs; None for all.
        tag: only benchmarks with this tag; None for all.
    """
    chosen = only(
        {
            "measurements.run_id": run_ids,
            "measurements.series_id": series_ids,
            "measurements.benchmark": benchmarks,
            "runs.gpu_uuid": gpu_uuids,
        }
    )
    if chosen is None:
        return []
    tagged = (
        "" if tag is None else f"{'and' if chosen.where else 'where'} list_contains(measurements.tags, ?)"
    )
    return _read(
        database,
        _CHOSEN.format(where=f"{chosen.where} {tagged}", newest=""),
        [*chosen.parameters, *([] if tag is None else [tag])],
    )


def load_newest_points(database: Database, *, run_ids: Sequence[str]) -> list[SeriesPoint]:
    """The newest measurement of every series of each repository among some runs, oldest run first."""
    chosen = only({"measurements.run_id": run_ids})
    if chosen is None:
        return []
    return _read(database, _CHOSEN.format(where=chosen.where, newest=_NEWEST), chosen.parameters)


def load_centers(
    database: Database, *, run_ids: Sequence[str]
) -> dict[tuple[str, str], list[tuple[str, float]]]:
    """Run id and centre of every measurement that has one, by series id and repository, oldest run first."""
    chosen = only({"measurements.run_id": run_ids})
    if chosen is None:
        return {}
    with database.reading() as connection:
        rows = fetch_rows(connection, _CENTERS.format(where=chosen.where), chosen.parameters)
    return {
        (row["series_id"], row["repository"]): list(zip(row["run_ids"], row["centers"], strict=True))
        for row in rows
    }


def _read(database: Database, choice: str, parameters: Sequence[str]) -> list[SeriesPoint]:
    with database.reading() as connection:
        headers = fetch_rows(connection, choice + _HEADERS.format(columns=HEADER_COLUMNS), parameters)
        kernels = fetch_rows(connection, choice + _KERNELS, parameters)
        points = fetch_rows(connection, choice + _POINTS, parameters)
    return _assembled(headers, kernels, points)


def _assembled(headers: list[Row], kernels: list[Row], points: list[Row]) -> list[SeriesPoint]:
    header_by_run = {row["run_id"]: header_of(row) for row in headers}
    series_by_id: dict[str, SeriesKey] = {}
    kernels_by_place: dict[tuple[str, int], list[Kernel]] = {}
    for row in kernels:
        place = (row["run_id"], row["measurement_index"])
        kernels_by_place.setdefault(place, []).append(kernel_of(row))
    assembled = []
    for row in points:
        series = series_by_id.get(row["series_id"])
        if series is None:
            series = series_by_id[row["series_id"]] = series_of(row)
        place = (row["run_id"], row["measurement_index"])
        assembled.append(
            _point(row, header_by_run[row["run_id"]], series, tuple(kernels_by_place.get(place, ())))
        )
    return assembled


def _point(row: Row, header: RunHeader, series: SeriesKey, kernels: tuple[Kernel, ...]) -> SeriesPoint:
    return SeriesPoint(
        header=header,
        series=series,
        interval=interval_of(row, "", windows="interval_windows", status="fold_status"),
        resolution_ms=row["resolution_ms"],
        tier=Tier(row["tier"]),
        tier_evidence=tuple(row["tier_evidence"]),
        tags=tuple(row["tags"]),
        source=row["source"],
        window_medians_ms=tuple(row["medians_ms"] or ()),
        window_passes=tuple(row["passes_counted"] or ()),
        n_samples=row["n_samples"],
        n_left_out=row["n_left_out"],
        kernels=kernels,
        flops=row["flops"],
        bytes_moved=row["bytes_moved"],
        renamed_from=row["renamed_from"],
    )
