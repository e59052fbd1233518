"""Windows and their samples: the bulk of a store, written column-wise.

A run holds tens of thousands of samples. They travel into DuckDB as flat NumPy columns, one
row per sample, and are gathered into lists there; that is several times faster than any way
of handing over Python lists.
"""

from __future__ import annotations

import json
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from store.records import Window
from store.rows import (
    Row,
    columns_of,
    fetch_rows,
    from_instant,
    packed,
    readings_from_json,
    readings_to_json,
    storable,
    unpacked,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import duckdb

    from store.records import Run

_FLOAT_LISTS = ("latency_ms", "sum_ms", "copy_ms", "pause_ms")
_INTEGER_LISTS = ("n_kernels", "sm_clock_mhz", "throttle_reasons")
SAMPLE_LISTS = ("samples_ms", "exclusions", *_FLOAT_LISTS, *_INTEGER_LISTS)
_PLAIN = ("pass_index", "position", "pid", "warmup_calls", "warmup_ms", "inner_reps", "attempts", "invalid")
_FLAT = "flat_samples"


def insert_windows(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    """Append all windows of a run, samples included, in one statement."""
    rows = []
    windows: list[Window] = []
    for measurement_index, measurement in enumerate(run.measurements):
        for window_index, window in enumerate(measurement.windows):
            place = {
                "run_id": run.header.run_id,
                "measurement_index": measurement_index,
                "window_index": window_index,
            }
            rows.append({**place, "ordinal": len(windows), **_statistics(window), **_plain(window)})
            windows.append(window)
    if not rows:
        return
    columns = columns_of(connection, "windows")
    scalars = {name: kind for name, kind in columns.items() if name not in SAMPLE_LISTS}
    reasons = sorted({why for window in windows for why in window.exclusions if why is not None})
    connection.register(_FLAT, _flat_columns(windows, reasons))
    try:
        connection.execute(
            _insert_sql(columns, scalars),
            [packed((*scalars, "ordinal"), rows), json.dumps(storable(reasons))],
        )
    finally:
        connection.unregister(_FLAT)


def load_windows(
    connection: duckdb.DuckDBPyConnection, run_id: str, measurement_index: int | None = None
) -> dict[int, tuple[Window, ...]]:
    """The windows of a run by the index of their measurement, raw samples included.

    Args:
        connection: an open store.
        run_id: the run's whole id.
        measurement_index: only this measurement; None for all.
    """
    found: dict[int, list[Window]] = {}
    for row in fetch_rows(
        connection,
        "select * from windows where run_id = ? and (? is null or measurement_index = ?) "
        "order by measurement_index, window_index",
        [run_id, measurement_index, measurement_index],
    ):
        window = Window(
            **{name: row[name] for name in _PLAIN}
            | {name: tuple(row[name]) for name in SAMPLE_LISTS}
            | {
                "started_at": from_instant(row["started_at"]),
                "telemetry": readings_from_json(row["telemetry"]),
            }
        )
        found.setdefault(row["measurement_index"], []).append(window)
    return {index: tuple(windows) for index, windows in found.items()}


def _plain(window: Window) -> Row:
    return {
        "started_at": window.started_at,
        "telemetry": readings_to_json(window.telemetry),
        **{name: getattr(window, name) for name in _PLAIN},
    }


def _statistics(window: Window) -> Row:
    """Statistics of the kept samples; percentiles are interpolated linearly."""
    kept = window.kept_ms
    p10, p90 = np.percentile(kept, [10, 90]).tolist() if kept else (None, None)
    return {
        "n": len(window.samples_ms),
        "n_kept": len(kept),
        "median_ms": window.median_ms,
        "mean_ms": statistics.fmean(kept) if kept else None,
        "sd_ms": float(np.std(kept, ddof=1)) if len(kept) > 1 else None,
        "min_ms": min(kept, default=None),
        "p10_ms": p10,
        "p90_ms": p90,
    }


def _flat_columns(windows: Sequence[Window], reasons: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """One row per sample of any window: its place, its values, and which values it has.

    A list that a window does not have is marked by ``<name>_given``, a value that could not
    be read by ``<name>_known``. ``reason`` is the place in ``reasons``, from 1; 0 for none.
    """
    lengths = [len(window.samples_ms) for window in windows]
    code: dict[str | None, int] = {why: number for number, why in enumerate(reasons, start=1)}
    columns = {
        "ordinal": np.repeat(np.arange(len(windows)), lengths),
        "place": np.arange(sum(lengths)),
        "samples_ms": np.array([s for window in windows for s in window.samples_ms], dtype=np.float64),
        "reason": np.array([code.get(why, 0) for window in windows for why in window.exclusions], np.int64),
    }
    for name in _FLOAT_LISTS:
        columns[name] = np.array(list(_padded(windows, name, 0.0)), dtype=np.float64)
    for name in _INTEGER_LISTS:
        values = list(_padded(windows, name, None))
        columns[name] = np.array([0 if value is None else value for value in values], dtype=np.int64)
        columns[f"{name}_known"] = np.array([value is not None for value in values], dtype=np.bool_)
    for name in (*_FLOAT_LISTS, *_INTEGER_LISTS):
        columns[f"{name}_given"] = np.repeat([bool(getattr(w, name)) for w in windows], lengths)
    return columns


def _padded(windows: Sequence[Window], name: str, filler: Any) -> Iterator[Any]:
    for window in windows:
        yield from getattr(window, name) or (filler,) * len(window.samples_ms)


def _insert_sql(columns: dict[str, str], scalars: dict[str, str]) -> str:
    gathered = [
        "list(samples_ms order by place) as samples_ms",
        "list(why[reason] order by place) as exclusions",
    ]
    gathered += [
        f"list({name} order by place) filter (where {name}_given) as {name}" for name in _FLOAT_LISTS
    ]
    gathered += [
        f"list(case when {name}_known then {name} end order by place) filter (where {name}_given) as {name}"
        for name in _INTEGER_LISTS
    ]
    selected = [f"r.{name}" if name in scalars else f"coalesce(lists.{name}, [])" for name in columns]
    return f"""
        insert into windows ({", ".join(columns)})
        select {", ".join(selected)}
        from {unpacked({**scalars, "ordinal": "BIGINT"})}
        left join (
            select ordinal, {", ".join(gathered)}
            from {_FLAT}, (select from_json(?, '["VARCHAR"]') as why)
            group by ordinal
        ) as lists on lists.ordinal = r.ordinal
    """  # noqa: S608 - names come from the schema
