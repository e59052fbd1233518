"""Parts of runs, as pages ask for them, are the same as in the whole run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from builders import a_failure, a_header, a_measurement, a_run, a_window

from store.database import Database
from store.errors import RunNotFound
from store.evidence import load_failures, load_headers, load_measurement
from store.machines import load_machine_states
from store.records import Reading
from store.runs import load_run, save_run
from store.series import load_centers, load_newest_points, load_points

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(name="database")
def _database(tmp_path: Path) -> Database:
    return Database(tmp_path / "parts.duckdb")


def test_one_measurement_is_the_same_alone_and_in_its_run(database: Database) -> None:
    run = a_run(3, measurements=(a_measurement("topk"), a_measurement("softmax"), a_measurement("rotary")))
    save_run(database, run)

    alone = load_measurement(
        database, run_id=run.header.run_id, series_id=run.series_key(run.measurements[1]).id
    )

    assert alone == load_run(database, run.header.run_id).measurements[1]


def test_a_measurement_that_is_not_there_is_named(database: Database) -> None:
    save_run(database, a_run(3))

    with pytest.raises(RunNotFound, match="measurement of series 0123"):
        load_measurement(database, run_id=a_header(3).run_id, series_id="0123")


def test_failures_and_headers_of_some_runs_are_those_of_the_runs(database: Database) -> None:
    broken = a_run(3, failures=(a_failure("one"), a_failure("two")))
    for run in (broken, a_run(4)):
        save_run(database, run)
    ids = [broken.header.run_id, a_header(4).run_id, "unknown"]

    assert load_failures(database, run_ids=ids) == {broken.header.run_id: broken.failures}
    assert load_headers(database, run_ids=ids) == [a_header(3), a_header(4)]
    assert load_failures(database, run_ids=[]) == {}
    assert load_headers(database, run_ids=[]) == []


def test_the_newest_point_of_each_series_comes_from_the_newest_run_that_has_it(database: Database) -> None:
    save_run(database, a_run(3, measurements=(a_measurement("topk"), a_measurement("softmax"))))
    save_run(database, a_run(4, measurements=(a_measurement("softmax", seed=9),)))
    ids = [a_header(3).run_id, a_header(4).run_id]

    newest = load_newest_points(database, run_ids=ids)

    whole = load_points(database, run_ids=ids)
    assert newest == [p for p in whole if (p.series.case.benchmark, p.header.run_id) != ("softmax", ids[0])]
    assert load_newest_points(database, run_ids=[]) == []


def test_a_series_of_two_repositories_has_a_newest_point_in_each(database: Database) -> None:
    save_run(database, a_run(3))
    save_run(database, a_run(4, header={"repository": "github.com/example/fork"}))

    newest = load_newest_points(database, run_ids=[a_header(3).run_id, a_header(4).run_id])

    assert [point.header.repository for point in newest] == [
        "github.com/example/kernels", "github.com/example/fork",
    ]  # fmt: skip


def test_centers_are_in_the_order_of_the_runs(database: Database) -> None:
    runs = [a_run(number) for number in (5, 3, 4)]
    for run in runs:
        save_run(database, run)
    series = runs[0].series_key(runs[0].measurements[0]).id

    centers = load_centers(database, run_ids=[run.header.run_id for run in runs])

    in_order = sorted(runs, key=lambda run: run.header.started_at)
    assert centers == {
        (series, "github.com/example/kernels"): [
            (run.header.run_id, run.measurements[0].interval.center) for run in in_order
        ]
    }
    assert load_centers(database, run_ids=[]) == {}


def test_a_run_tells_what_its_windows_saw_of_the_machine(database: Database) -> None:
    moved = {
        "power_w": Reading(value=650.0),
        "temperature_c": Reading(value=70),
        "throttle.power_cap": Reading(value=1200),
        "throttle.thermal": Reading(value=0),
    }
    windows = (
        a_window(0, sm_clock_mhz=(1980,) * 29 + (1830,), telemetry=moved),
        a_window(1, telemetry=moved | {"power_w": Reading(value=450.0)}, invalid="another process"),
        a_window(2, telemetry={"power_w": Reading(error="NVML: Not Supported")}),
    )
    save_run(database, a_run(3, measurements=(a_measurement(windows=windows),)))

    (state,) = load_machine_states(database, run_ids=[a_header(3).run_id]).values()

    assert (state.windows, state.windows_invalid, state.windows_counted) == (3, 1, 2)
    assert (state.clock_low_mhz, state.clock_mhz, state.clock_high_mhz) == (1830, 1980, 1980)
    assert (state.power_w, state.power_high_w, state.temperature_high_c) == (550.0, 650.0, 70)
    assert state.throttled == {
        "power_cap": 2, "thermal": 0, "sync_boost": 0, "hw_thermal": 0, "hw_power_brake": 0,
    }  # fmt: skip


def test_a_machine_that_tells_nothing_has_no_numbers(database: Database) -> None:
    windows = tuple(a_window(i, sm_clock_mhz=(), telemetry={}) for i in range(3))
    save_run(database, a_run(3, measurements=(a_measurement(windows=windows),)))

    (state,) = load_machine_states(database, run_ids=[a_header(3).run_id]).values()

    assert (state.clock_mhz, state.power_w, state.temperature_c, state.windows_counted) == (
        None, None, None, 0,
    )  # fmt: skip
    assert load_machine_states(database, run_ids=[]) == {}
