"""How far a measurement can be trusted, with the evidence: pure.

First match wins. C: the number says nothing about the code. A: everything that a tool can
check about a GPU without counters of its own was in order. B: everything else; its interval
already contains what the windows differed by.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

from collector.intervals import WINDOWS_MIN, WINDOWS_MIN_PROVISIONAL
from collector.pacing import CLOCK_BAND_MHZ, REASONS_BENIGN, REASONS_HARDWARE, reason_names
from collector.timers import EVENT_FLOOR_MS
from store.records import ClockRegime, Tier, Timer
from store.settings import Within, check_bounds

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from store.records import Window

HARDWARE_COUNTERS = ("throttle.hw_thermal", "throttle.hw_power_brake")
SOFTWARE_COUNTERS = ("throttle.power_cap", "throttle.thermal", "throttle.sync_boost")


@dataclass(frozen=True, slots=True, kw_only=True)
class TierRule:
    """The thresholds of grading; the table ``[tier]`` of the configuration.

    Attributes:
        clock_cv_max: how far the SM clock may vary, as standard deviation over mean, before the
            number says nothing about the code (C).
        windows_min: fewest windows of tier A. Below six, order statistics give no 95 % interval.
        samples_min: fewest samples of tier A, over all windows.
        left_out_share_max: the largest share of samples outside the clock band for tier A.

    Raises:
        RecordInvalid: a value lies out of range.
    """

    clock_cv_max: Annotated[float, Within(0, 1, low_open=True, unit="(a share: 0.03 is 3 %)")] = 0.03
    windows_min: Annotated[int, Within(WINDOWS_MIN, 1000, unit="windows")] = WINDOWS_MIN
    samples_min: Annotated[int, Within(1, 1_000_000, unit="samples")] = 30
    left_out_share_max: Annotated[float, Within(0, 1, unit="(a share: 0.2 is 20 %)")] = 0.2

    def __post_init__(self) -> None:
        check_bounds(self)

    @property
    def note(self) -> str | None:
        """What is not as by default, in words that stand with the evidence; or None."""
        said = [
            f"{entry.name} {value} instead of {entry.default}"
            for entry in fields(self)
            if (value := getattr(self, entry.name)) != entry.default
        ]
        return f"graded by {', '.join(said)}" if said else None


DEFAULT_RULE = TierRule()


@dataclass(frozen=True)
class Graded:
    """A tier and the sentences that say why, the deciding one first."""

    tier: Tier
    evidence: tuple[str, ...]


@dataclass(frozen=True)
class ClockBand:
    """The SM clock a measurement belongs to, and what is left out of its fold.

    Attributes:
        reference_mhz: the clock most samples were taken at, or None where none could be read.
        refuses_limited: samples that something limited are left out too. Not where every
            sample is limited, as on machines that report a power limit all the time.
    """

    reference_mhz: int | None
    refuses_limited: bool

    def exclusion(self, clock: int | None, reasons: int | None) -> str | None:
        """Why a sample taken at this clock is left out, or None. Never looks at its time."""
        if clock is None or self.reference_mhz is None:
            return None
        limits = (reasons or 0) & ~REASONS_BENIGN
        because = f" ({reason_names(limits)})" if limits else ""
        if abs(clock - self.reference_mhz) > CLOCK_BAND_MHZ:
            return f"SM clock {clock} MHz, {self.reference_mhz} MHz expected{because}"
        if limits and self.refuses_limited:
            return f"SM clock about to fall{because}"
        return None


NO_BAND = ClockBand(reference_mhz=None, refuses_limited=False)


def clock_band(
    samples: Iterable[tuple[int | None, int | None]], *, proven_mhz: int | None = None
) -> ClockBand:
    """The clock that most samples were taken at; of clocks equally common the highest.

    Samples that nothing limited decide, where there are any.

    Args:
        samples: (clock in MHz, reason mask) of every sample of every window.
        proven_mhz: the clock that was locked or verified before the first window. Then it is
            the reference, however many samples were taken at another one.
    """
    known = [(clock, reasons or 0) for clock, reasons in samples if clock is not None]
    unlimited = [clock for clock, reasons in known if not reasons & ~REASONS_BENIGN]
    counts = Counter(unlimited or [clock for clock, _ in known])
    if not counts:
        return NO_BAND
    common = max(counts, key=lambda clock: (counts[clock], clock))
    return ClockBand(proven_mhz or common, refuses_limited=bool(unlimited))


def grade(
    windows: Sequence[Window], *, timer: Timer, regime: ClockRegime, rule: TierRule = DEFAULT_RULE
) -> Graded:
    """Grade the windows of one measurement.

    Args:
        windows: with their exclusions already marked.
        timer: how they were timed.
        regime: what was done about the clocks.
        rule: the thresholds; where they are not the defaults, the evidence says so.
    """
    tier, evidence = _graded(windows, timer=timer, regime=regime, rule=rule)
    return Graded(tier, tuple(evidence) if rule.note is None else (*evidence, rule.note))


def _graded(
    windows: Sequence[Window], *, timer: Timer, regime: ClockRegime, rule: TierRule
) -> tuple[Tier, list[str]]:
    counted = [window for window in windows if window.counts]
    against = _reasons_for_c(counted, timer, rule)
    if against:
        return Tier.C, against
    missing = _missing_for_a(counted, regime, rule)
    if missing:
        return Tier.B, missing
    clocks = _kept_clocks(counted)
    evidence = (
        f"{regime} clocks; {len(counted)} windows in {len(counted)} processes; "
        f"{sum(len(w.kept_ms) for w in counted)} samples between {min(clocks)} and {max(clocks)} MHz; "
        "no throttling while they were taken"
    )
    return Tier.A, [evidence]


def _reasons_for_c(counted: Sequence[Window], timer: Timer, rule: TierRule) -> list[str]:
    if timer is Timer.WALL:
        return ["timed by the host clock, which sees launches and waiting too"]
    found = []
    for name in HARDWARE_COUNTERS:
        moved = [w.pass_index for w in counted if _counter(w, name) > 0]
        if moved:
            found.append(
                f"hardware throttling: {name.removeprefix('throttle.')} moved in pass {_listed(moved)}"
            )
    throttled = [
        w.pass_index for w in counted if any((r or 0) & REASONS_HARDWARE for r in w.throttle_reasons)
    ]
    if throttled:
        found.append(f"hardware throttling was reported in pass {_listed(throttled)}")
    clocks = _kept_clocks(counted)
    if not clocks:
        found.append(
            "no telemetry: the SM clock could not be read" if counted else "no sample was left to count"
        )
    elif _variation(clocks) > rule.clock_cv_max:
        found.append(f"the SM clock varied by {_variation(clocks):.1%} (limit {100 * rule.clock_cv_max:g}%)")
    if len(counted) < WINDOWS_MIN_PROVISIONAL:
        found.append(f"{len(counted)} windows, {WINDOWS_MIN_PROVISIONAL} are the least for an interval")
    if timer is Timer.EVENTS and any((w.median_ms or 0) * w.inner_reps < EVENT_FLOOR_MS for w in counted):
        found.append(
            f"the timed region is shorter than {EVENT_FLOOR_MS * 1e3:g} us, the floor of CUDA events"
        )
    return found


def _missing_for_a(counted: Sequence[Window], regime: ClockRegime, rule: TierRule) -> list[str]:
    missing = []
    if regime is ClockRegime.FREE:
        missing.append("free clocks: nothing was done to hold them")
    if len(counted) < rule.windows_min:
        missing.append(f"{len(counted)} windows, tier A needs {rule.windows_min}")
    if len({window.pid for window in counted}) < len(counted):
        missing.append("windows share a process")
    kept = sum(len(window.kept_ms) for window in counted)
    total = sum(len(window.samples_ms) for window in counted)
    if kept < rule.samples_min:
        missing.append(f"{kept} samples, tier A needs {rule.samples_min}")
    varying = [window.pass_index for window in counted if len(set(window.n_kernels)) > 1]
    if varying:
        missing.append(f"the number of kernels differs between iterations of pass {_listed(varying)}")
    if total - kept > rule.left_out_share_max * total:
        missing.append(f"{total - kept} of {total} samples were taken outside the clock band")
    return missing + _disturbances(counted)


def _disturbances(counted: Sequence[Window]) -> list[str]:
    """What happened to the clock while samples that count were taken."""
    found = []
    clocks = _kept_clocks(counted)
    if max(clocks) - min(clocks) > 2 * CLOCK_BAND_MHZ:
        found.append(f"kept samples lie between {min(clocks)} and {max(clocks)} MHz")
    limits = 0
    for window in counted:
        for why, reasons in zip(window.exclusions, window.throttle_reasons, strict=True):
            limits |= 0 if why is not None or reasons is None else reasons & ~REASONS_BENIGN
    if limits:
        found.append(f"kept samples were limited: {reason_names(limits)}")
    for name in SOFTWARE_COUNTERS:
        # A counter that moved where samples were left out has been accounted for by them.
        moved = [w.pass_index for w in counted if _counter(w, name) > 0 and not any(w.exclusions)]
        if moved:
            found.append(
                f"{name.removeprefix('throttle.')} throttling between samples of pass {_listed(moved)}"
            )
    return found


def _kept_clocks(counted: Sequence[Window]) -> list[int]:
    return [
        clock
        for window in counted
        for clock, why in zip(window.sm_clock_mhz, window.exclusions, strict=False)
        if clock is not None and why is None
    ]


def _variation(clocks: Sequence[int]) -> float:
    """Standard deviation over mean."""
    return math.sqrt(statistics.pvariance(clocks)) / statistics.fmean(clocks)


def _counter(window: Window, name: str) -> float:
    """By how much a throttle counter moved; an unreadable one proves nothing and counts as still."""
    reading = window.telemetry.get(name)
    return float(reading.value) if reading is not None and isinstance(reading.value, int | float) else 0.0


def _listed(passes: Sequence[int]) -> str:
    return ", ".join(map(str, passes))
