"""Where the wall time of runs went: with the device at work, in needed pauses, or with neither. Pure."""

from __future__ import annotations

import statistics
from dataclasses import fields
from typing import TYPE_CHECKING

from store.records import Quantity
from store.studies import WallTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.records import Run, Window


def wall_time(runs: Sequence[Run]) -> WallTime | None:
    """Add up the parts of all windows of the runs.

    What a window repeated because of lost records or a hidden limit is in none of its parts: it
    is found among what lies outside windows.

    Args:
        runs: whole runs.

    Returns:
        None where one of them took turns with a run of another commit: its wall time is that of both.
    """
    if any(run.header.paired_with is not None for run in runs):
        return None
    windows = [
        _of_window(window)
        for run in runs
        for measurement in run.measurements
        if measurement.quantity is not Quantity.RATIO  # made of the windows of two others
        for window in measurement.windows
    ]
    return WallTime(**{part.name: sum(getattr(w, part.name) for w in windows) for part in fields(WallTime)})


def _of_window(window: Window) -> WallTime:
    calls, pauses = sum(window.samples_ms) * window.inner_reps, sum(window.pause_ms)
    loop = _reading(window, "phase.loop_ms")
    warm_calls = warm_pauses = 0.0
    if window.samples_ms:
        # The samples tell what the calls of the warm-up took, which nobody timed.
        share = window.warmup_calls / len(window.samples_ms)
        warm_pauses = min(share * pauses, window.warmup_ms)
        typical = statistics.median(window.samples_ms) * window.warmup_calls * window.inner_reps
        warm_calls = min(typical, window.warmup_ms - warm_pauses)
    return WallTime(
        calls_s=(calls + warm_calls) / 1e3,
        pauses_s=(pauses + warm_pauses) / 1e3,
        warm_up_s=(window.warmup_ms - warm_calls - warm_pauses) / 1e3,
        loop_s=max(0.0, loop - calls - pauses) / 1e3,
        reading_s=_reading(window, "phase.read_ms") / 1e3,
        setup_s=_reading(window, "phase.setup_ms") / 1e3,
    )


def _reading(window: Window, name: str) -> float:
    """A phase in milliseconds; one that was not timed is part of what lies outside windows."""
    reading = window.telemetry.get(name)
    value = None if reading is None else reading.value
    return float(value) if isinstance(value, int | float) else 0.0
