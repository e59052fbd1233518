"""Points carry all that judges and charts need, and no sample is read for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import GPU_UUID, a_kernel, a_measurement, a_run, a_window

from store import series
from store.records import FoldStatus, Interval
from store.runs import save_run
from store.series import load_points

if TYPE_CHECKING:
    from store.database import Database
    from store.records import Run


def two_benchmarks(commit: int, **header: str) -> Run:
    return a_run(commit, measurements=(a_measurement("softmax"), a_measurement("matmul")), header=header)


def test_a_point_says_of_a_measurement_what_the_run_says(database: Database) -> None:
    measurement = a_measurement(kernels=(a_kernel(), a_kernel(name="reduce", count=2)), flops=None)
    run = a_run(measurements=(measurement,))
    save_run(database, run)

    (point,) = load_points(database)

    assert point.header == run.header
    assert point.series == run.series_key(measurement)
    for name in ("interval", "resolution_ms", "tier", "tier_evidence", "tags", "source", "kernels", "flops"):
        assert getattr(point, name) == getattr(measurement, name), name
    assert point.bytes_moved == measurement.bytes_moved
    assert point.window_medians_ms == tuple(window.median_ms for window in measurement.windows)
    assert (point.n_samples, point.n_left_out) == (240, 0)


def test_windows_that_do_not_count_are_left_out_and_counted(database: Database) -> None:
    windows = (
        a_window(1, samples_ms=(2.0, 2.0, 9.0), exclusions=(None, None, "clock")),
        a_window(0, samples_ms=(1.0, 1.0)),
        a_window(2, samples_ms=(3.0, 3.0, 3.0), invalid="another process on the GPU"),
        a_window(3, samples_ms=(4.0,), exclusions=("clock",)),
        a_window(4, samples_ms=(), invalid="records dropped"),
    )
    save_run(database, a_run(measurements=(a_measurement(windows=windows),)))

    (point,) = load_points(database)

    assert point.window_medians_ms == (1.0, 2.0)
    assert point.window_passes == (0, 1)
    assert (point.n_samples, point.n_left_out) == (4, 5)


def test_a_measurement_without_windows_is_a_point_without_medians(database: Database) -> None:
    refused = Interval(None, None, None, 0, FoldStatus.REFUSED)
    save_run(database, a_run(measurements=(a_measurement(windows=(), interval=refused, kernels=()),)))

    (point,) = load_points(database)

    assert (point.window_medians_ms, point.n_samples, point.n_left_out) == ((), 0, 0)
    assert point.interval == refused


def test_points_come_in_the_order_in_which_runs_were_started(database: Database) -> None:
    for commit in (12, 10, 11):
        save_run(database, two_benchmarks(commit))

    points = load_points(database)

    assert [(p.header.commit_sha, p.series.case.benchmark) for p in points] == [
        (two_benchmarks(commit).header.commit_sha, benchmark)
        for commit in (10, 11, 12)
        for benchmark in ("softmax", "matmul")
    ]


def test_points_are_chosen_by_run_series_benchmark_and_gpu(database: Database) -> None:
    here, later, elsewhere = two_benchmarks(10), two_benchmarks(11), two_benchmarks(12, gpu_uuid="GPU-2")
    for run in (here, later, elsewhere):
        save_run(database, run)
    softmax = here.series_key(here.measurements[0])

    assert len(load_points(database)) == 6
    assert {p.header.run_id for p in load_points(database, run_ids=[here.header.run_id])} == {
        here.header.run_id
    }
    assert [p.series for p in load_points(database, series_ids=[softmax.id])] == [softmax, softmax]
    assert {p.series.case.benchmark for p in load_points(database, benchmarks=["matmul"])} == {"matmul"}
    assert len(load_points(database, gpu_uuids=[GPU_UUID, "GPU-2"])) == 6
    assert len(load_points(database, gpu_uuids=["GPU-2"], benchmarks=["matmul", "softmax"])) == 2
    assert load_points(database, gpu_uuids=["GPU-2"], series_ids=[softmax.id]) == []


def test_choosing_from_nothing_gives_nothing(database: Database) -> None:
    save_run(database, a_run())

    assert load_points(database, run_ids=[]) == []
    assert load_points(database, benchmarks=[], gpu_uuids=[GPU_UUID]) == []


@pytest.mark.parametrize("statement", ["_CHOSEN", "_HEADERS", "_KERNELS", "_POINTS"])
def test_no_statement_reads_a_list_of_samples(statement: str) -> None:
    sql = getattr(series, statement)

    assert "windows.*" not in sql
    for name in ("samples_ms", "exclusions", "latency_ms", "sum_ms", "sm_clock_mhz", "telemetry"):
        assert name not in sql
