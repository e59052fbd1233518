"""One measurement on a page: its samples by window, what does not count, its kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from dashboard.charts import windows as windows_charts
from dashboard.formatting import count_of, format_interval, literal
from dashboard.tables import Column, code, plain, table
from dashboard.views.drawing import draw
from store.kernel_names import readable

if TYPE_CHECKING:
    from store.records import Measurement


def show_measurement(measurement: Measurement) -> None:
    """Tier with its evidence, the samples as a chart, windows that do not count, and the kernels."""
    st.markdown(
        f"Tier {measurement.tier}: "
        + "; ".join(map(literal, measurement.tier_evidence))
        + _rates(measurement)
    )
    draw(
        windows_charts.windows_chart(measurement),
        alt=f"Samples of {measurement.case.label} in {count_of(len(measurement.windows), 'window')}; "
        f"interval {format_interval(measurement.interval, measurement.quantity)}. "
        "The page of the evidence holds every number.",
    )
    step = windows_charts.samples_step(measurement)
    st.caption(
        "Each dot is one iteration in the order it was taken; bars are medians of windows, the band is the "
        "interval they were folded into." + (f" One sample in {step} is drawn." if step > 1 else "")
    )
    for window in measurement.windows:
        if window.invalid is not None:
            st.warning(f"The window of pass {window.pass_index} does not count: {literal(window.invalid)}")
    _show_kernels(measurement)


def _rates(measurement: Measurement) -> str:
    rates = []
    if measurement.tflops is not None:
        rates.append(f"{measurement.tflops:.3g} TFLOP/s")
    if measurement.bandwidth_tbs is not None:
        rates.append(f"{measurement.bandwidth_tbs:.3g} TB/s")
    return f"  \n{', '.join(rates)} at the median" if rates else ""


def _show_kernels(measurement: Measurement) -> None:
    if not measurement.kernels:
        return
    columns = [
        Column("Kernel"), Column("Launches", numeric=True), Column("Grid", numeric=True),
        Column("Block", numeric=True), Column("Cluster", numeric=True, wide_only=True),
        Column("Registers", numeric=True), Column("Shared memory", numeric=True),
    ]  # fmt: skip
    rows = [
        [
            code(readable(kernel.name)), plain(str(kernel.count)), plain(_extent(kernel.grid)),
            plain(_extent(kernel.block)), plain(_extent(kernel.cluster)),
            plain(str(kernel.registers)), plain(f"{kernel.shared_bytes:,} B"),
        ]
        for kernel in measurement.kernels
    ]  # fmt: skip
    st.html(table("Kernels that one call launched", columns, rows))


def _extent(size: tuple[int, int, int]) -> str:
    return " x ".join(map(str, size)) if any(size) else "none"
