"""What stands behind one number, in rows: its windows, what was left out, where the time went. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from dashboard.formatting import NOTHING, format_amount, format_moment
from dashboard.tables import Column, Markup, code, plain, table
from store.machines import COUNTERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Measurement, Quantity, Reading, Window

_Value = TypeVar("_Value", int, float, int | None)
_PHASE = "phase."
_WHOLE_WINDOW = "the whole window: "


def left_out(measurement: Measurement) -> list[tuple[str, int]]:
    """Why samples do not count, with how many of each reason, most first."""
    reasons: Counter[str] = Counter()
    for window in measurement.windows:
        for why in window.exclusions:
            if window.invalid is not None:
                reasons[_WHOLE_WINDOW + window.invalid] += 1
            elif why is not None:
                reasons[why] += 1
    return reasons.most_common()


def windows_table(measurement: Measurement) -> Markup:
    """One row for each window: its process, its samples, and what was read from the GPU beside it."""
    columns = [
        Column("Pass", numeric=True), Column("Process", numeric=True), Column("Started", wide_only=True),
        Column("Place", numeric=True, wide_only=True), Column("Warm-up", numeric=True, wide_only=True),
        Column("Samples", numeric=True), Column("Left out", numeric=True), Column("Median", numeric=True),
        Column("Least", numeric=True, wide_only=True), Column("Clock (MHz)", numeric=True),
        Column("Power (W)", numeric=True, wide_only=True), Column("Temp. (°C)", numeric=True),
        Column("Throttle counters", wide_only=True), Column("Attempts", numeric=True, wide_only=True),
    ]  # fmt: skip
    rows = [_window_cells(window, measurement.quantity) for window in measurement.windows]
    return table("Windows of this measurement, in the order of the passes", columns, rows)


def _window_cells(window: Window, quantity: Quantity) -> list[Markup]:
    kept = window.kept_ms if window.invalid is None else ()
    return [
        plain(str(window.pass_index)), plain(str(window.pid)), plain(format_moment(window.started_at)),
        plain(str(window.position)), plain(f"{window.warmup_calls} calls, {window.warmup_ms:.3g} ms"),
        plain(str(len(window.samples_ms))), plain(str(len(window.samples_ms) - len(kept))),
        plain(format_amount(window.median_ms, quantity)),
        plain(format_amount(min(kept, default=None), quantity)), plain(_clock_range(window)),
        _reading(window.telemetry.get("power_w")), _reading(window.telemetry.get("temperature_c")),
        plain(_moved_counters(window)), plain(str(window.attempts)),
    ]  # fmt: skip


def samples_table(window: Window, quantity: Quantity) -> Markup:
    """Every sample of one window, in the order they were taken."""
    columns = [
        Column("Sample", numeric=True), Column("Time", numeric=True), Column("Latency", numeric=True),
        Column("Copies", numeric=True, wide_only=True), Column("Kernels", numeric=True, wide_only=True),
        Column("Pause (ms)", numeric=True, wide_only=True), Column("Clock (MHz)", numeric=True),
        Column("Limits", numeric=True, wide_only=True), Column("In the fold"),
    ]  # fmt: skip
    rows = []
    for index, sample in enumerate(window.samples_ms):
        why = window.invalid or window.exclusions[index]
        reasons = _at(window.throttle_reasons, index)
        pause = _at(window.pause_ms, index)
        rows.append(
            [
                plain(str(index + 1)), plain(format_amount(sample, quantity)),
                plain(_duration(window.latency_ms, index, quantity)),
                plain(_duration(window.copy_ms, index, quantity)),
                plain(_text(_at(window.n_kernels, index))),
                plain(NOTHING if pause is None else f"{pause:.3g}"),
                plain(_text(_at(window.sm_clock_mhz, index))),
                plain(NOTHING if reasons is None else f"{reasons:#x}"),
                plain("yes" if why is None else f"no: {why}"),
            ]
        )  # fmt: skip
    return table(f"Samples of pass {window.pass_index}", columns, rows)


def phases_table(measurement: Measurement) -> Markup | None:
    """How long each phase of a window took, over the windows; None where no phase was timed."""
    names = sorted({n for w in measurement.windows for n in w.telemetry if n.startswith(_PHASE)})
    rows = []
    for name in names:
        readings = [w.telemetry[name] for w in measurement.windows if name in w.telemetry]
        values = [float(r.value) for r in readings if isinstance(r.value, int | float)]
        if values:
            cells = (min(values), sum(values) / len(values), max(values), sum(values))
            rows.append(
                [
                    plain(name.removeprefix(_PHASE).removesuffix("_ms")),
                    *(plain(f"{value:,.1f}") for value in cells),
                ]
            )
    if not rows:
        return None
    columns = [
        Column("Phase"), Column("Least (ms)", numeric=True), Column("Mean (ms)", numeric=True),
        Column("Most (ms)", numeric=True), Column("All windows (ms)", numeric=True),
    ]  # fmt: skip
    return table("Time that each phase of a window took", columns, rows)


def telemetry_table(measurement: Measurement) -> Markup:
    """What was read beside each window, one column for each pass; errors in words."""
    names = sorted({name for window in measurement.windows for name in window.telemetry})
    columns = [
        Column("Reading"),
        *(Column(f"Pass {window.pass_index}", numeric=True) for window in measurement.windows),
    ]
    rows = [[code(name), *(_reading(w.telemetry.get(name)) for w in measurement.windows)] for name in names]
    return table("Readings beside each window", columns, rows)


def _reading(reading: Reading | None) -> Markup:
    if reading is None:
        return plain(NOTHING)
    if reading.error is not None:
        return plain("unreadable", more=reading.error)
    value = reading.value
    return plain(f"{value:.4g}" if isinstance(value, float) else str(value))


def _clock_range(window: Window) -> str:
    clocks = [clock for clock in window.sm_clock_mhz if clock is not None]
    if not clocks:
        return NOTHING
    return str(clocks[0]) if min(clocks) == max(clocks) else f"{min(clocks)} to {max(clocks)}"


def _moved_counters(window: Window) -> str:
    """Throttle counters that moved while the samples were taken; those nobody could read are named."""
    readings = {name: window.telemetry.get(f"throttle.{name}") for name in COUNTERS}
    known = {name: reading for name, reading in readings.items() if reading and reading.error is None}
    if not known:
        return "not read"
    moved = [name for name, reading in known.items() if reading.value]
    return ", ".join(moved) if moved else "none moved"


def _at(values: Sequence[_Value], index: int) -> _Value | None:
    return values[index] if values else None


def _duration(values: Sequence[float], index: int, quantity: Quantity) -> str:
    return format_amount(_at(values, index), quantity)


def _text(value: int | None) -> str:
    return NOTHING if value is None else str(value)
