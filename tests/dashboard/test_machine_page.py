"""One GPU over time: its readings, its sentinels, drift, and what it found about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_header, a_measurement, a_run, a_window
from pages import specs_of, text_of
from rows import a_point, an_interval

from dashboard.machines import drifts, sentinel_points
from store.database import Database
from store.records import Reading, Run, Tier
from store.runs import save_run
from store.studies import AaResult, AaStudy, save_study

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage

    from store.records import SeriesPoint

STUDY_ID = "0a1b2c3d-0000-4000-8000-000000000001"


def sentinel_at(commit: int, center: float, **changes: Any) -> SeriesPoint:
    return a_point(commit, benchmark="sentinel_copy", interval=an_interval(center), **changes)


def a_run_with_sentinel(commit: int, *, power: float = 250.0, moved: int = 0, **header: Any) -> Run:
    telemetry = {
        "power_w": Reading(value=power),
        "temperature_c": Reading(value=41),
        "throttle.power_cap": Reading(value=moved),
    }
    windows = tuple(a_window(place, n=10, telemetry=telemetry, seed=commit) for place in range(6))
    sentinel = a_measurement("sentinel_copy", parameters={}, tags=("sentinel",), windows=windows)
    return a_run(commit, measurements=(a_measurement(windows=windows), sentinel), header=header)


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> Database:
    database = Database(tmp_path / "machine.duckdb")
    for commit in range(1, 6):
        save_run(database, a_run_with_sentinel(commit, moved=1000 if commit == 3 else 0))
    return database


def test_the_page_shows_readings_throttling_and_sentinels(store: Database, open_page: OpenPage) -> None:
    app = open_page(store.url, "machine")

    assert not app.exception
    page = text_of(app)
    assert "A throttle counter moved in 1 run of 5" in page
    assert "power cap in 12" in page
    assert "0 of 1 sentinel drift" in page
    titles = [str(spec) for spec in specs_of(app)]
    for word in ("SM clock (MHz)", "power (W)", "temperature (°C)", "windows throttled", "from its median"):
        assert any(word in title for title in titles), word


def test_without_a_study_the_page_says_how_to_make_one(store: Database, open_page: OpenPage) -> None:
    assert "collect aa --runs 5" in text_of(open_page(store.url, "machine"))


def test_a_study_says_false_alarms_and_the_smallest_change_seen(store: Database, open_page: OpenPage) -> None:
    header, measurement = a_header(1), a_measurement()
    series = header.series_key(measurement.case, measurement.quantity, measurement.cache_state)
    result = AaResult(
        series=series, tier=Tier.A, runs=5, center_ms=0.25, run_sd=0.001, window_sd=0.002, pairs=10,
        pairs_flagged=1, smallest_seen=0.0123,
    )  # fmt: skip
    study = AaStudy(
        study_id=STUDY_ID, repository=header.repository, commit_shas=(header.commit_sha or "",),
        gpu_uuids=(header.gpu_uuid,), run_ids=(header.run_id,), left_out=("rare[n=1]",), seconds=300.0,
        seconds_per_case=2.0, tool_version="0.1.0", analysed_at=EPOCH, results=(result,),
    )  # fmt: skip
    save_study(store, study)

    page = text_of(open_page(store.url, "machine", gpu=header.gpu_uuid))

    assert "1 of 10 pairs" in page
    assert "1.23 %" in page
    assert r"rare\[n=1\]" in page


def test_a_machine_without_readings_or_sentinels_says_so(tmp_path: Path, open_page: OpenPage) -> None:
    database = Database(tmp_path / "silent.duckdb")
    windows = tuple(a_window(place, n=10, sm_clock_mhz=(), telemetry={}) for place in range(6))
    save_run(database, a_run(1, measurements=(a_measurement(windows=windows),)))

    app = open_page(database.url, "machine")

    assert not app.exception
    assert "timed without NVML" in text_of(app)
    assert "No sentinel was measured" in text_of(app)
    assert not specs_of(app)


def test_an_unknown_gpu_is_named_and_another_is_shown(store: Database, open_page: OpenPage) -> None:
    app = open_page(store.url, "machine", gpu="GPU-nobody")

    assert "nobody" in app.warning[0].value
    assert specs_of(app)


def test_a_sentinel_far_from_its_past_drifts() -> None:
    steady = [sentinel_at(commit, 0.25 + 0.0001 * (commit % 3)) for commit in range(1, 7)]

    (still,) = drifts([*steady, sentinel_at(7, 0.2501)])
    (moved,) = drifts([*steady, sentinel_at(7, 0.2600)])
    (unknown,) = drifts([sentinel_at(1, 0.25), sentinel_at(2, 0.30)])

    assert (still.drifts, moved.drifts, unknown.drifts) == (False, True, None)
    assert moved.change == pytest.approx(0.04, abs=0.001)
    assert (moved.host, moved.earlier) == ("runner-1", 6)


def test_a_steady_sentinel_must_move_by_half_a_percent_to_drift() -> None:
    (drift,) = drifts([*(sentinel_at(commit, 0.25) for commit in range(1, 7)), sentinel_at(7, 0.2510)])

    assert drift.spread == 0
    assert drift.drifts is False


def test_each_environment_counts_from_a_median_of_its_own() -> None:
    points = [sentinel_at(1, 0.25), sentinel_at(2, 0.30, header=a_header(2, environment="driver=590"))]

    placed = sentinel_points(points, [point.header for point in points])

    assert [point.change for point in placed] == [0, 0]
