"""Evidence: everything behind one number, down to each sample."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import queries, url_state
from dashboard.charts import clocks as clock_charts
from dashboard.evidence import left_out, phases_table, samples_table, telemetry_table, windows_table
from dashboard.formatting import count_of, format_amount, format_interval, format_moment, gpu_label, literal
from dashboard.measured import show_measurement
from dashboard.tables import Column, link, plain, table
from dashboard.url_state import page_address
from dashboard.views.drawing import draw
from store import shown

if TYPE_CHECKING:
    from store.records import Measurement, RunHeader

_SAMPLES_HEIGHT_PX = 460


def show() -> None:
    """Draw the page."""
    run_id = next(iter(url_state.in_url("run")), None)
    series_id = next(iter(url_state.in_url("series")), None)
    if run_id is None or series_id is None:
        st.title("Evidence")
        st.info(
            "This page shows every sample behind one number. Come here by a click on a median, "
            "on the overview, on a commit or in the table below a trend."
        )
        st.page_link("views/overview.py", label="Go to the overview")
        return
    header = queries.header(run_id)
    measurement = queries.measurement(run_id, series_id)
    _show_head(header, measurement, series_id)
    show_measurement(measurement)
    _show_left_out(measurement)
    st.subheader("Windows")
    st.html(windows_table(measurement))
    _show_clocks(measurement)
    _show_telemetry(measurement)
    _show_samples(measurement)


def _show_head(header: RunHeader, measurement: Measurement, series_id: str) -> None:
    st.title(literal(measurement.case.label))
    interval = measurement.interval
    st.markdown(
        f"**{literal(format_amount(interval.center, measurement.quantity))}**, 95 % interval "
        f"{literal(format_interval(interval, measurement.quantity))}, from "
        f"{count_of(interval.windows, 'window')}; resolution of one sample "
        f"{literal(format_amount(measurement.resolution_ms, measurement.quantity))}; "
        f"fold {interval.status}, version {measurement.fold_version}  \n"
        f"measured {format_moment(header.started_at)} on "
        f"{literal(gpu_label(header.gpu_name, header.gpu_uuid))}, timer {header.timer}, "
        f"{measurement.cache_state} cache, {header.clock_regime} clocks, {literal(header.environment)}  \n"
        f"`{measurement.source}`"
    )
    commit = page_address("commit", {"sha": header.commit_sha or "", "run": header.run_id})
    st.html(
        link(f"Commit {shown.short(header.commit_sha)}", commit)
        + " · "
        + link("Trend of this series", page_address("trends", {"series": series_id}))
        + " · "
        + link("Machine", page_address("machine", {"gpu": header.gpu_uuid}))
    )


def _show_left_out(measurement: Measurement) -> None:
    st.subheader("What was left out")
    total = sum(len(window.samples_ms) for window in measurement.windows)
    reasons = left_out(measurement)
    if not reasons:
        st.write(f"Nothing: all {count_of(total, 'sample')} count.")
        return
    out = sum(number for _, number in reasons)
    st.write(
        f"{out:,} of {count_of(total, 'sample')} do not count. "
        "The choice looks at the clock, never at the time."
    )
    columns = [Column("Why"), Column("Samples", numeric=True)]
    rows = [[plain(why), plain(f"{number:,}")] for why, number in reasons]
    st.html(table("Why samples were left out", columns, rows))


def _show_clocks(measurement: Measurement) -> None:
    st.subheader("Clock trace")
    if not clock_charts.has_clocks(measurement):
        st.info("No clock was read beside these samples: this timer or this machine cannot give it.")
        return
    draw(
        clock_charts.clocks_chart(measurement),
        alt=f"SM clock after each sample and pause before it, for {measurement.case.label}, pass by pass. "
        "The tables of windows and samples hold every number.",
    )
    step = clock_charts.clocks_step(measurement)
    st.caption(
        "A cross marks an iteration after which NVML named something that limits the clock."
        + (f" One sample in {step} is drawn." if step > 1 else "")
    )


def _show_telemetry(measurement: Measurement) -> None:
    phases = phases_table(measurement)
    if phases is not None:
        st.subheader("Where the time of a window went")
        st.html(phases)
    if any(window.telemetry for window in measurement.windows):
        with st.expander("All readings beside each window"):
            st.html(telemetry_table(measurement))


def _show_samples(measurement: Measurement) -> None:
    st.subheader("Every sample")
    passes = {str(place): window for place, window in enumerate(measurement.windows)}
    if not passes:
        st.info("This measurement has no window.")
        return
    chosen = url_state.one(
        "Window", "window", list(passes), default="0",
        show=lambda place: f"pass {passes[place].pass_index}, process {passes[place].pid}",
        width_px=260,
    )  # fmt: skip
    with st.container(height=_SAMPLES_HEIGHT_PX):
        st.html(samples_table(passes[chosen], measurement.quantity))


if __name__ == "__main__":
    show()
