"""Everything behind one number, on its page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run, a_window
from pages import specs_of, text_of

from dashboard.charts.clocks import clocks_chart
from dashboard.charts.windows import SAMPLES_MAX
from dashboard.evidence import left_out
from store.database import Database
from store.records import Measurement, Reading
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from pages import OpenPage
    from streamlit.testing.v1 import AppTest

BAND = "SM clock 1830 MHz, more than 30 MHz below 1980 MHz"


def windows_with_gaps() -> tuple[Any, ...]:
    """Eight windows: one that does not count, one with two samples outside the clock band."""
    invalid = a_window(0, n=10, invalid="another process computed on the GPU")
    outside = a_window(
        1,
        n=10,
        exclusions=(None,) * 8 + (BAND, BAND),
        sm_clock_mhz=(1980,) * 8 + (1830, 1830),
        throttle_reasons=(0,) * 8 + (4, 4),
    )
    return (invalid, outside, *(a_window(place, n=10, seed=place) for place in range(2, 8)))


def open_evidence(folder: Path, open_page: OpenPage, measurement: Measurement, **more: str) -> AppTest:
    run = a_run(3, measurements=(measurement,))
    store = Database(folder / "evidence.duckdb")
    save_run(store, run)
    series = run.series_key(measurement).id
    return open_page(store.url, "evidence", run=run.header.run_id, series=series, **more)


def test_the_page_shows_samples_windows_clocks_and_what_was_left_out(
    tmp_path: Path, open_page: OpenPage
) -> None:
    app = open_evidence(tmp_path, open_page, a_measurement(windows=windows_with_gaps()), window="1")

    assert not app.exception
    page = text_of(app)
    assert "12 of 80 samples do not count" in page
    assert page.count(f"no: {BAND}") == 2
    assert "another process computed on the GPU" in page
    assert "1830 to 1980" in page
    assert "0x4" in page
    assert "softmax_warp_forward" in page
    samples, clocks = specs_of(app)
    assert "sample (us)" in str(samples)
    assert "SM clock (MHz)" in str(clocks)


def test_reasons_are_counted_sample_by_sample() -> None:
    assert left_out(a_measurement(windows=windows_with_gaps())) == [
        ("the whole window: another process computed on the GPU", 10),
        (BAND, 2),
    ]


def test_phases_and_unreadable_readings_are_shown(tmp_path: Path, open_page: OpenPage) -> None:
    telemetry = {
        "phase.setup_ms": Reading(value=1.5),
        "phase.loop_ms": Reading(value=26.0),
        "power_w": Reading(error="NVML: Not Supported"),
    }
    windows = tuple(a_window(place, n=10, telemetry=telemetry) for place in range(8))

    page = text_of(open_evidence(tmp_path, open_page, a_measurement(windows=windows)))

    assert "<td>setup</td>" in page.replace(' class=""', "")
    assert "208.0" in page  # eight windows of 26 ms
    assert "NVML: Not Supported" in page


def test_a_machine_that_reads_no_clock_says_so(tmp_path: Path, open_page: OpenPage) -> None:
    windows = tuple(
        a_window(place, n=10, sm_clock_mhz=(), throttle_reasons=(), telemetry={}) for place in range(8)
    )

    app = open_evidence(tmp_path, open_page, a_measurement(windows=windows))

    assert not app.exception
    assert "No clock was read" in text_of(app)
    assert "not read" in text_of(app)
    assert len(specs_of(app)) == 1


def test_the_clock_trace_of_many_samples_stays_light() -> None:
    measurement = a_measurement(windows=tuple(a_window(place, n=1000) for place in range(8)))

    (values,) = clocks_chart(measurement).to_dict()["datasets"].values()

    assert SAMPLES_MAX / 2 < 2 * len(values) <= SAMPLES_MAX


def test_without_an_address_the_page_says_how_to_come_here(busy_store: Database, open_page: OpenPage) -> None:
    app = open_page(busy_store.url, "evidence")

    assert "by a click on a median" in text_of(app)


@pytest.mark.parametrize("parameters", [{"run": "no-such-run", "series": "0123"}])
def test_an_unknown_number_is_said_to_be_unknown(
    busy_store: Database, open_page: OpenPage, parameters: dict[str, str]
) -> None:
    app = open_page(busy_store.url, "evidence", **parameters)

    assert not app.exception
    assert "no-such-run" in app.error[0].value.replace("\\", "")


def test_medians_on_every_page_lead_to_their_evidence(busy_store: Database, open_page: OpenPage) -> None:
    overview = text_of(open_page(busy_store.url))

    assert 'href="/evidence?run=' in overview
