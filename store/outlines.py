"""Every measurement of a store in outline, for whoever judges or searches all of them at once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from store.portable import log
from store.records import CacheState, FoldStatus, Interval, Quantity, SeriesKey, SeriesPoint, Tier
from store.rows import case_of, fetch_rows
from store.runs import failure_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import duckdb
    from numpy.typing import NDArray

    from store.database import Database
    from store.records import Failure, RunHeader

TIERS = tuple(Tier)
STATUSES = tuple(FoldStatus)
_SERIES = """
select series_id, any_value(measurements.run_id) as run_id, any_value(benchmark) as benchmark,
    any_value(parameters) as parameters, any_value(quantity) as quantity,
    any_value(cache_state) as cache_state
from measurements join known_runs using (run_id) group by series_id order by series_id
"""
# Words that are few travel as their place among those: text takes several times as long.
_OUTLINES = f"""
select known_runs.code as run, known_series.code as series, center_ms, low_ms, high_ms,
    interval_windows as windows, list_position({[str(s) for s in STATUSES]}, fold_status) - 1 as status,
    resolution_ms, list_position({[str(tier) for tier in TIERS]}, tier) - 1 as tier,
    tier_evidence[1] as evidence, to_json(tags)::varchar as tags, source, renamed_from
from measurements join known_runs using (run_id) join known_series using (series_id)
order by known_runs.code, measurement_index
"""  # noqa: S608 - our own words
_FAILURES = "select * from failures order by run_id, failure_index"


class Outlines(Mapping[str, Sequence[SeriesPoint]]):
    """Measurements as columns, and as points by the id of their run where they are asked for.

    What a point has not is empty or zero in it: windows, kernels, work, and all pieces of
    evidence but the one that decided the tier. ``load_points`` gives points whole.

    Attributes:
        headers: the runs, in the order in which they began.
        series: the keys, by number.
        number: of each key.
        begin: where the rows of each run begin; one more than there are runs.
        run, series_code: by row, the number of its run and of its series.
        low_ms, center_ms, high_ms: by row; NaN where there is none.
        log_center: by row, the log of the centre in milliseconds; NaN without bounds.
        resolution_ms: by row, the time quantum of one sample.
        windows: by row, how many windows were folded.
        status: by row, the place of the fold's status in ``STATUSES``.
        tier: by row, the place of the tier in ``TIERS``.
        tags: by row, a number of ``tag_sets``.
        tag_sets: the tags that measurements have.
    """

    def __init__(
        self, headers: Sequence[RunHeader], series: Sequence[SeriesKey], columns: Mapping[str, NDArray[Any]]
    ) -> None:
        self.headers, self.series = headers, series
        self.run, self.series_code = columns["run"], columns["series"]
        self.begin = np.searchsorted(self.run, np.arange(len(headers) + 1))
        self.low_ms, self.center_ms, self.high_ms = (
            _filled(columns[name], np.nan) for name in ("low_ms", "center_ms", "high_ms")
        )
        self.has_bounds = ~np.isnan(self.low_ms + self.center_ms + self.high_ms)
        self.log_center = np.full(self.run.size, np.nan)
        self.log_center[self.has_bounds] = log(self.center_ms[self.has_bounds])
        self.resolution_ms, self.windows = columns["resolution_ms"], columns["windows"]
        self.status, self.tier = columns["status"], columns["tier"]
        sets: dict[str, int] = {}
        self.tags = np.array([sets.setdefault(text, len(sets)) for text in columns["tags"]], dtype=np.intp)
        self.tag_sets = [tuple(json.loads(text)) for text in sets]
        texts = ("evidence", "source", "renamed_from")
        self._texts = {name: _filled(columns[name], None) for name in texts}
        self.number = {key: code for code, key in enumerate(series)}
        self._codes = {header.run_id: code for code, header in enumerate(headers)}
        self._points: dict[str, list[SeriesPoint]] = {}
        self._alone: dict[int, SeriesPoint] = {}

    def rows(self, run_id: str) -> range:
        """The rows of a run, in the order in which it measured; none of a run that is not known."""
        code = self._codes.get(run_id)
        return range(0) if code is None else range(int(self.begin[code]), int(self.begin[code + 1]))

    def point(self, row: int) -> SeriesPoint:
        """One measurement."""
        found = self._alone.get(row)
        if found is None:
            (found,) = self._made(self.headers[self.run[row]], range(row, row + 1))
            self._alone[row] = found
        return found

    def __getitem__(self, run_id: str) -> Sequence[SeriesPoint]:
        found = self._points.get(run_id)
        if found is None:
            rows = self.rows(run_id)
            if not rows:
                raise KeyError(run_id)
            found = self._points[run_id] = list(self._made(self.headers[self._codes[run_id]], rows))
        return found

    def __iter__(self) -> Iterator[str]:
        return (run_id for run_id in self._codes if self.rows(run_id))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _made(self, header: RunHeader, rows: range) -> Iterator[SeriesPoint]:
        part = slice(rows.start, rows.stop)
        columns = (
            self.series_code, self.center_ms, self.low_ms, self.high_ms, self.windows, self.status,
            self.resolution_ms, self.tier, self.tags, *self._texts.values(),
        )  # fmt: skip
        for (
            series, center, low, high, windows, status, resolution, tier, tags, evidence, source, renamed_from
        ) in zip(*(column[part].tolist() for column in columns), strict=True):  # fmt: skip
            yield SeriesPoint(
                header=header,
                series=self.series[series],
                interval=Interval(_number(center), _number(low), _number(high), windows, STATUSES[status]),
                resolution_ms=resolution,
                tier=TIERS[tier],
                tier_evidence=() if evidence is None else (evidence,),
                tags=self.tag_sets[tags],
                source=source,
                window_medians_ms=(),
                window_passes=(),
                n_samples=0,
                n_left_out=0,
                renamed_from=renamed_from,
            )


def load_outlines(database: Database, headers: Iterable[RunHeader]) -> Outlines:
    """The measurements of every run, in a tenth of the time that ``load_points`` takes.

    Args:
        database: the store.
        headers: the runs; what was measured in others is passed over.
    """
    ordered = sorted(headers, key=lambda header: (header.started_at, header.run_id))
    known = {header.run_id: header for header in ordered}
    with database.reading() as connection:
        _register(connection, "known_runs", "run_id", list(known))
        found = fetch_rows(connection, _SERIES)
        _register(connection, "known_series", "series_id", [row["series_id"] for row in found])
        columns = connection.execute(_OUTLINES).fetchnumpy()
    series = [
        known[row["run_id"]].series_key(
            case_of(row["benchmark"], row["parameters"]),
            Quantity(row["quantity"]),
            CacheState(row["cache_state"]),
        )
        for row in found
    ]
    return Outlines(ordered, series, columns)


def load_all_failures(database: Database) -> Mapping[str, tuple[Failure, ...]]:
    """What gave no number in each run that has a failure, by the run's id."""
    with database.reading() as connection:
        rows = fetch_rows(connection, _FAILURES)
    found: dict[str, list[Failure]] = defaultdict(list)
    for row in rows:
        found[row["run_id"]].append(failure_of(row))
    return {run_id: tuple(failures) for run_id, failures in found.items()}


def _register(connection: duckdb.DuckDBPyConnection, table: str, column: str, ids: Sequence[str]) -> None:
    """Make ids and their places among themselves known to a query."""
    named = np.empty(len(ids), dtype=np.object_)
    named[:] = ids
    connection.register(table, {column: named, "code": np.arange(len(ids))})


def _filled(column: NDArray[Any], missing: Any) -> NDArray[Any]:
    """A column as DuckDB gives it, masked where something is missing, as a plain one."""
    return np.where(np.ma.getmaskarray(column), missing, np.ma.getdata(column))


def _number(value: float) -> float | None:
    return None if value != value else value  # noqa: PLR0124 - NaN stands for what is missing
