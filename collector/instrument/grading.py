"""The tier of one window, from what was read about the clock while it was taken: pure.

First match wins. C: a hardware limit held the clock down, or the clock varied by more than
3 %, or another process used the GPU. A: the policy controls the clock, and it was read at
every sample and stayed within 30 MHz. B: everything else, in particular where nothing could
be read: an unread clock is no steady clock.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

from collector.instrument.results import MeasurementTier, known
from collector.pacing import CLOCK_BAND_MHZ, REASONS_BENIGN, REASONS_HARDWARE, reason_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from collector.instrument.policies import ClockPolicy
    from collector.protocol import JsonReading
    from collector.window import MeasuredWindow

CLOCK_CV_MAX_PCT = 3.0
HARDWARE_COUNTERS = ("hw_thermal", "hw_power_brake")


@dataclass(frozen=True)
class Graded:
    """A tier and what it was made from; for the fields see ``TimingResult``."""

    tier: MeasurementTier
    evidence: tuple[str, ...]
    clock_cv_pct: float | None
    clock_range_mhz: int | None
    throttle_fired: bool | None
    throttle_reasons: tuple[str, ...]


def grade_window(window: MeasuredWindow, policy: ClockPolicy, *, no_telemetry: str | None) -> Graded:
    """Grade one window.

    Args:
        window: with what NVML said after each sample, and by how much its counters moved.
        policy: what was done about the clock.
        no_telemetry: why NVML could not be asked, or None.
    """
    clocks = known(window.progress.sm_clock_mhz)
    masks = known(window.progress.throttle_reasons)
    moved = _moved_counters(window.telemetry)
    limits = 0
    for mask in masks:
        limits |= mask & ~REASONS_BENIGN
    cv_pct = 100 * math.sqrt(statistics.pvariance(clocks)) / statistics.fmean(clocks) if clocks else None
    spread = max(clocks) - min(clocks) if clocks else None
    against = _reasons_for_c(limits, moved, cv_pct, window.invalid)
    missing = _missing_for_a(policy, clocks, len(window.progress.sm_clock_mhz), no_telemetry)
    if against:
        tier, evidence = MeasurementTier.C, against
    elif missing:
        tier, evidence = MeasurementTier.B, missing
    else:
        tier, evidence = MeasurementTier.A, [f"{policy.says}; {_range(clocks)} MHz at every sample"]
    return Graded(
        tier=tier,
        evidence=tuple(evidence),
        clock_cv_pct=cv_pct,
        clock_range_mhz=spread,
        throttle_fired=bool(limits or moved) if masks or _counters_read(window.telemetry) else None,
        throttle_reasons=(*([reason_names(limits)] if limits else []), *moved),
    )


def _reasons_for_c(limits: int, moved: Sequence[str], cv_pct: float | None, invalid: str | None) -> list[str]:
    found = []
    hardware = [reason_names(limits & REASONS_HARDWARE)] if limits & REASONS_HARDWARE else []
    hardware += [name for name in moved if name in HARDWARE_COUNTERS]
    if hardware:
        found.append(f"hardware throttling: {', '.join(hardware)}")
    if cv_pct is not None and cv_pct > CLOCK_CV_MAX_PCT:
        found.append(f"the SM clock varied by {cv_pct:.1f} % (limit {CLOCK_CV_MAX_PCT:g} %)")
    if invalid is not None:
        found.append(invalid)
    return found


def _missing_for_a(
    policy: ClockPolicy, clocks: Sequence[int], samples: int, no_telemetry: str | None
) -> list[str]:
    missing = []
    if not policy.controls_clock:
        missing.append(policy.says)
    if not clocks:
        missing.append(f"no telemetry: {no_telemetry or 'NVML could not read the SM clock'}")
    elif len(clocks) < samples:
        missing.append(f"the SM clock could be read at {len(clocks)} of {samples} samples")
    elif max(clocks) - min(clocks) > CLOCK_BAND_MHZ:
        missing.append(f"the SM clock moved between {_range(clocks)} MHz (limit {CLOCK_BAND_MHZ} MHz)")
    return missing


def _range(clocks: Sequence[int]) -> str:
    return f"{min(clocks)} to {max(clocks)}"


def _moved_counters(telemetry: Mapping[str, JsonReading]) -> list[str]:
    """Names of the throttle counters that counted time while the samples were taken."""
    return [
        name.removeprefix("throttle.")
        for name, reading in telemetry.items()
        if name.startswith("throttle.") and reading.get("value")
    ]


def _counters_read(telemetry: Mapping[str, JsonReading]) -> bool:
    return any(name.startswith("throttle.") and "value" in reading for name, reading in telemetry.items())
