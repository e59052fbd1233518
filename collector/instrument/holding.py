"""One window at a held clock: measured again when the right pause was found only on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from collector.instrument.results import known
from collector.pacing import CLOCK_BAND_MHZ, Pacer
from collector.window import measure_window

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.window import MeasuredWindow, Rig

WINDOWS_MAX = 3


def held_window(call: Callable[[], object], rig: Rig) -> MeasuredWindow:
    """Measure a window, and where pauses are to hold the clock but did not, another with the pause learnt.

    Runs leave the samples at another clock out of their fold; here there is but one window, and
    it is replaced as a whole. The choice looks at the clock, never at the times. After three
    windows the last one stands as it is.

    Raises:
        TimingError: the window gave no trustworthy number.
    """
    window = measure_window(call, rig)
    for _ in range(WINDOWS_MAX - 1):
        clocks = known(window.progress.sm_clock_mhz)
        if not rig.pacer.hold or not clocks or max(clocks) - min(clocks) <= CLOCK_BAND_MHZ:
            break
        window = measure_window(call, replace(rig, pacer=pacer_after(window, hold=True)))
    return window


def pacer_after(window: MeasuredWindow, *, hold: bool) -> Pacer:
    """A pacer that begins with what an earlier window of the same call taught."""
    return Pacer(hold, window.next_pause_ms, window.too_short_ms)
