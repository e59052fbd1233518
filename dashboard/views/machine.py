"""Machine: one GPU over time, whether it stands still, and how far its numbers can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard import queries, states, url_state
from dashboard.charts import machine as machine_charts
from dashboard.differences import SENTINEL
from dashboard.formatting import count_of, format_moment, literal
from dashboard.latest import lately
from dashboard.machine_tables import drifts_table, runs_table, study_table
from dashboard.machines import drifts, in_order, machine_names, sentinel_points
from dashboard.views.drawing import draw
from store import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.machines import MachineState
    from store.records import RunHeader

_RUN_COUNTS = ("30", "100", "300")
_RUNS_PER_GPU = 20


def show() -> None:
    """Draw the page."""
    headers = queries.recent_headers()
    if not headers:
        states.show_empty()
        return
    st.title("Machine")
    names = machine_names(headers)
    asked = next(iter(url_state.in_url("gpu")), None)
    if asked is not None and asked not in names:
        names |= machine_names(queries.recent_headers(gpu_uuid=asked, limit=1))
    if asked is not None and asked not in names:
        st.warning(f"No run on {literal(asked)} is stored: the link may belong to another store.")
    first, second = st.columns([4, 1])
    with first:
        gpu_uuid = url_state.one("GPU", "gpu", list(names), default=next(iter(names)), show=names.__getitem__)
    with second:
        limit = url_state.one("Newest runs", "runs", _RUN_COUNTS, default="100")
    own = queries.recent_headers(gpu_uuid=gpu_uuid, limit=int(limit))
    runs = in_order(own, queries.machine_states([header.run_id for header in own]))
    _show_readings(runs)
    _show_sentinels(sorted(own, key=lambda header: header.started_at))
    _show_drift(lately(headers, per_gpu=_RUNS_PER_GPU))
    _show_studies(gpu_uuid)


def _show_readings(runs: Sequence[tuple[RunHeader, MachineState]]) -> None:
    st.subheader("Clocks, power and temperature")
    if not any(state.clock_mhz is not None or state.power_w is not None for _, state in runs):
        st.info("Nobody read clock, power or temperature in these runs: they were timed without NVML.")
        return
    for fields, title, words in (
        (("clock_low_mhz", "clock_mhz", "clock_high_mhz"), "SM clock (MHz)", "SM clock after a sample"),
        ((None, "power_w", "power_high_w"), "power (W)", "Power at the end of a window"),
        (
            (None, "temperature_c", "temperature_high_c"),
            "temperature (°C)",
            "Temperature after a window",
        ),
    ):
        low, middle, high = fields
        draw(
            machine_charts.reading_chart(runs, low=low, middle=middle, high=high, title=title),
            alt=f"{words}, over {count_of(len(runs), 'run')}: median of each run and up to its highest. "
            "The table below holds every number.",
        )
    st.caption("A dot is the median of a run's windows; the line reaches from the least to the highest.")
    _show_throttling(runs)
    with st.expander("All numbers of these charts"):
        st.html(runs_table(runs))


def _show_throttling(runs: Sequence[tuple[RunHeader, MachineState]]) -> None:
    throttled = sum(any(state.throttled.values()) for _, state in runs)
    unread = sum(not state.windows_counted for _, state in runs)
    if unread:
        st.info(
            f"No throttle counter could be read in {count_of(unread, 'run')}: nothing is known about them."
        )
    if not throttled:
        if unread < len(runs):
            which = "the other" if unread else "the"
            st.write(f"No throttle counter moved in {which} {count_of(len(runs) - unread, 'run')}.")
        return
    st.write(f"A throttle counter moved in {count_of(throttled, 'run')} of {len(runs):,}.")
    draw(
        machine_charts.throttle_chart(runs),
        alt=f"Windows in which a throttle counter moved, over {count_of(len(runs), 'run')}. "
        "The table below holds every number.",
    )


def _show_sentinels(headers: Sequence[RunHeader]) -> None:
    st.subheader("Sentinels")
    points = queries.tagged_points([header.run_id for header in headers], SENTINEL)
    placed = sentinel_points(points, headers)
    if not placed:
        st.info("No sentinel was measured in these runs, so that nothing tells code and machine apart.")
        return
    draw(
        machine_charts.sentinels_chart(placed, len(headers)),
        alt=f"{count_of(len({point.label for point in placed}), 'sentinel')} over "
        f"{count_of(len(headers), 'run')}, each in percent of its own median, between "
        f"{min(point.change for point in placed):+.2%} and {max(point.change for point in placed):+.2%}. "
        "The table of drifts below says how the newest run stands.",
    )
    st.caption(
        "Sentinels are fixed calls of kernelwatch's own: where they move together, the machine moved. "
        "Each environment counts from a median of its own."
    )


def _show_drift(headers: Sequence[RunHeader]) -> None:
    st.subheader("Which machine drifts")
    found = drifts(queries.tagged_points([header.run_id for header in headers], SENTINEL))
    if not found:
        st.info("No machine has two runs with sentinels under the same conditions yet.")
        return
    moving = sum(bool(drift.drifts) for drift in found)
    st.write(
        f"{moving} of {count_of(len(found), 'sentinel')} drift: the newest run lies further from the earlier "
        "ones than their spread explains, and by 0.5 % or more."
    )
    st.html(drifts_table(found))


def _show_studies(gpu_uuid: str) -> None:
    st.subheader("A/A: the same code, measured again and again")
    studies = queries.studies(gpu_uuid)
    if not studies:
        st.info(
            "Nobody measured the same code several times on this GPU yet. This does, and keeps the result:"
        )
        st.code("collect aa --runs 5", language=None, wrap_lines=True)
        return
    newest = studies[0]
    alarms = "" if newest.false_alarms is None else f" ({shown.share(newest.false_alarms)})"
    st.markdown(
        f"**{newest.pairs_flagged:,} of {newest.pairs:,} pairs** of runs of the same code were called "
        f"different{alarms}, in the newest of {count_of(len(studies), 'study', 'studies')}, "
        f"{format_moment(newest.analysed_at)}, {count_of(len(newest.run_ids), 'run')}."
    )
    st.html(study_table(newest))
    if newest.left_out:
        st.caption("Too few runs gave an interval for: " + literal(", ".join(newest.left_out)))


if __name__ == "__main__":
    show()
