"""Runs: saved whole or not at all, once however often they arrive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from store.checks import check_run
from store.commits import from_segments, insert_commits, read_commits, segments
from store.errors import RunNotFound
from store.headers import HEADER_COLUMNS, header_columns, header_of
from store.records import (
    CacheState,
    Failure,
    Kernel,
    Measurement,
    Quantity,
    Run,
    RunHeader,
    Stage,
    Tier,
)
from store.releases import insert_tags, read_tags
from store.rows import Row, case_columns, case_of, fetch_rows, insert_rows, interval_of
from store.windows import insert_windows, load_windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from store.database import Database
    from store.records import Window

_EXISTS = "select 1 from runs where run_id = ?"
_MATCHING = "select run_id from runs where starts_with(run_id, ?) order by started_at desc, run_id"
_NAMED_IN_MESSAGES = 5
_FIND = """
select {columns} from runs
where (? is null or starts_with(runs.commit_sha, ?)) and (? is null or runs.gpu_uuid = ?)
order by runs.started_at desc, runs.run_id
limit ?
"""
_NO_LIMIT = 2**62


def save_run(database: Database, run: Run) -> bool:
    """Store a run with everything in it, in one transaction.

    Returns:
        False when a run with this id was there already; it is left as it is.

    Raises:
        StoreInvalid: the run contradicts itself or the commits that are known.
        StoreError: the store could not be opened or written.
    """
    check_run(run)
    with database.writing() as connection:
        if connection.execute(_EXISTS, [run.header.run_id]).fetchone():
            return False
        insert_commits(connection, run.header.repository, run.history)
        _insert_header(connection, run)
        insert_rows(connection, "measurements", _measurement_rows(run))
        insert_rows(connection, "kernels", _kernel_rows(run))
        insert_rows(connection, "failures", _failure_rows(run))
        insert_windows(connection, run)
        insert_tags(connection, run)
    return True


def load_run(database: Database, run_id: str) -> Run:
    """A run with everything in it, raw samples included.

    Args:
        database: the store.
        run_id: the id, or a beginning of it that no other run shares.

    Raises:
        RunNotFound: no run has this id, or several have.
    """
    with database.reading() as connection:
        whole_id = _whole_id(connection, database, run_id)
        (row,) = fetch_rows(connection, "select * from runs where run_id = ?", [whole_id])
        commits = read_commits(connection, row["repository"])
        return Run(
            header=header_of(row),
            measurements=_load_measurements(connection, whole_id),
            failures=_load_failures(connection, whole_id),
            history=from_segments(commits, row["history_tips"], row["history_lengths"]),
            git_tags=read_tags(connection, whole_id),
        )


def find_runs(
    database: Database,
    *,
    commit_sha: str | None = None,
    gpu_uuid: str | None = None,
    limit: int | None = None,
) -> list[RunHeader]:
    """Headers of the runs, newest first.

    Args:
        database: the store.
        commit_sha: only runs of this commit; a beginning of its id will do.
        gpu_uuid: only runs on this GPU.
        limit: at most so many.
    """
    with database.reading() as connection:
        rows = fetch_rows(
            connection,
            _FIND.format(columns=HEADER_COLUMNS),
            [commit_sha, commit_sha, gpu_uuid, gpu_uuid, _NO_LIMIT if limit is None else limit],
        )
    return [header_of(row) for row in rows]


def kernel_of(row: Row) -> Kernel:
    """The kernel in a row of ``kernels``."""
    return Kernel(
        name=row["name"],
        grid=(row["grid_x"], row["grid_y"], row["grid_z"]),
        block=(row["block_x"], row["block_y"], row["block_z"]),
        cluster=(row["cluster_x"], row["cluster_y"], row["cluster_z"]),
        registers=row["registers"],
        shared_bytes=row["shared_bytes"],
        count=row["launches"],
    )


def measurement_of(row: Row, *, kernels: Sequence[Kernel], windows: tuple[Window, ...]) -> Measurement:
    """The measurement in a row of ``measurements``, with what other tables hold of it."""
    return Measurement(
        case=case_of(row["benchmark"], row["parameters"]),
        quantity=Quantity(row["quantity"]),
        cache_state=CacheState(row["cache_state"]),
        tags=tuple(row["tags"]),
        source=row["source"],
        interval=interval_of(row, "", windows="interval_windows", status="fold_status"),
        resolution_ms=row["resolution_ms"],
        tier=Tier(row["tier"]),
        tier_evidence=tuple(row["tier_evidence"]),
        kernels=tuple(kernels),
        flops=row["flops"],
        bytes_moved=row["bytes_moved"],
        windows=windows,
        fold_version=row["fold_version"],
        renamed_from=row["renamed_from"],
    )


def failure_of(row: Row) -> Failure:
    """The failure in a row of ``failures``."""
    return Failure(
        case=None if row["benchmark"] is None else case_of(row["benchmark"], row["parameters"]),
        stage=Stage(row["stage"]),
        kind=row["kind"],
        message=row["message"],
        source=row["source"],
        log=row["log"],
        pass_index=row["pass_index"],
    )


def _whole_id(connection: duckdb.DuckDBPyConnection, database: Database, beginning: str) -> str:
    found = connection.execute(_MATCHING, [beginning.strip().lower()]).fetchall() if beginning.strip() else []
    if len(found) == 1:
        return str(found[0][0])
    if not found:
        raise RunNotFound(
            f"no run in {database.url} has an id that begins with {beginning!r}: 'store show' lists them"
        )
    ids = ", ".join(run_id for (run_id,) in found[:_NAMED_IN_MESSAGES])
    others = f" and {len(found) - _NAMED_IN_MESSAGES} others" if len(found) > _NAMED_IN_MESSAGES else ""
    raise RunNotFound(f"{beginning!r} could be {ids}{others}: give more of it")


def _insert_header(connection: duckdb.DuckDBPyConnection, run: Run) -> None:
    tips, lengths = segments(run.history)
    row = {
        **header_columns(run.header),
        "history_tips": tips,
        "history_lengths": lengths,
        "saved_at": datetime.now(UTC),
    }
    insert_rows(connection, "runs", [row])


def _measurement_rows(run: Run) -> list[Row]:
    return [
        {
            "run_id": run.header.run_id,
            "measurement_index": index,
            "series_id": run.series_key(measurement).id,
            **case_columns(measurement.case),
            "quantity": measurement.quantity,
            "cache_state": measurement.cache_state,
            "tags": measurement.tags,
            "source": measurement.source,
            "center_ms": measurement.interval.center,
            "low_ms": measurement.interval.low,
            "high_ms": measurement.interval.high,
            "interval_windows": measurement.interval.windows,
            "fold_status": measurement.interval.status,
            "resolution_ms": measurement.resolution_ms,
            "tier": measurement.tier,
            "tier_evidence": measurement.tier_evidence,
            "flops": measurement.flops,
            "bytes_moved": measurement.bytes_moved,
            "fold_version": measurement.fold_version,
            "renamed_from": measurement.renamed_from,
        }
        for index, measurement in enumerate(run.measurements)
    ]


def _kernel_rows(run: Run) -> list[Row]:
    return [
        {
            "run_id": run.header.run_id,
            "measurement_index": measurement_index,
            "kernel_index": kernel_index,
            "name": kernel.name,
            **dict(zip(("grid_x", "grid_y", "grid_z"), kernel.grid, strict=True)),
            **dict(zip(("block_x", "block_y", "block_z"), kernel.block, strict=True)),
            **dict(zip(("cluster_x", "cluster_y", "cluster_z"), kernel.cluster, strict=True)),
            "registers": kernel.registers,
            "shared_bytes": kernel.shared_bytes,
            "launches": kernel.count,
        }
        for measurement_index, measurement in enumerate(run.measurements)
        for kernel_index, kernel in enumerate(measurement.kernels)
    ]


def _failure_rows(run: Run) -> list[Row]:
    return [
        {
            "run_id": run.header.run_id,
            "failure_index": index,
            **case_columns(failure.case),
            "stage": failure.stage,
            "kind": failure.kind,
            "message": failure.message,
            "source": failure.source,
            "log": failure.log,
            "pass_index": failure.pass_index,
        }
        for index, failure in enumerate(run.failures)
    ]


def _load_measurements(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[Measurement, ...]:
    windows = load_windows(connection, run_id)
    kernels: dict[int, list[Kernel]] = {}
    ordered = "select * from kernels where run_id = ? order by measurement_index, kernel_index"
    for row in fetch_rows(connection, ordered, [run_id]):
        kernels.setdefault(row["measurement_index"], []).append(kernel_of(row))
    ordered = "select * from measurements where run_id = ? order by measurement_index"
    return tuple(
        measurement_of(
            row,
            kernels=kernels.get(row["measurement_index"], ()),
            windows=windows.get(row["measurement_index"], ()),
        )
        for row in fetch_rows(connection, ordered, [run_id])
    )


def _load_failures(connection: duckdb.DuckDBPyConnection, run_id: str) -> tuple[Failure, ...]:
    ordered = "select * from failures where run_id = ? order by failure_index"
    return tuple(failure_of(row) for row in fetch_rows(connection, ordered, [run_id]))
