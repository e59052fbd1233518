"""Tiers: first match wins, and the evidence says which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from builders import a_window

from collector.pacing import REASON_HW_THERMAL, REASON_SW_POWER_CAP
from collector.tiers import NO_BAND, ClockBand, TierRule, clock_band, grade
from store.records import ClockRegime, Reading, RecordInvalid, Tier, Timer

if TYPE_CHECKING:
    from store.records import Window

HOLDING = [ClockRegime.HELD, ClockRegime.LOCKED, ClockRegime.VERIFY]


def windows(count: int = 8, **changes: Any) -> list[Window]:
    return [a_window(i, n=30, **changes) for i in range(count)]


def tier(
    measured: list[Window], *, timer: Timer = Timer.CUPTI, regime: ClockRegime = ClockRegime.HELD
) -> Tier:
    return grade(measured, timer=timer, regime=regime).tier


def evidence(
    measured: list[Window], *, timer: Timer = Timer.CUPTI, regime: ClockRegime = ClockRegime.HELD
) -> str:
    return "; ".join(grade(measured, timer=timer, regime=regime).evidence)


@pytest.mark.parametrize("regime", HOLDING)
def test_eight_undisturbed_windows_of_their_own_process_are_tier_a(regime: ClockRegime) -> None:
    assert tier(windows(), regime=regime) is Tier.A
    assert "8 windows in 8 processes" in evidence(windows(), regime=regime)


def test_free_clocks_are_tier_b_at_best() -> None:
    assert tier(windows(), regime=ClockRegime.FREE) is Tier.B
    assert "nothing was done to hold them" in evidence(windows(), regime=ClockRegime.FREE)


def test_the_host_clock_is_always_tier_c() -> None:
    assert tier(windows(), timer=Timer.WALL) is Tier.C


@pytest.mark.parametrize(("count", "expected"), [(2, Tier.C), (3, Tier.B), (5, Tier.B), (6, Tier.A)])
def test_the_number_of_windows_limits_the_tier(count: int, expected: Tier) -> None:
    assert tier(windows(count)) is expected


def test_a_hardware_throttle_counter_that_moved_is_tier_c() -> None:
    measured = [*windows(7), a_window(7, telemetry={"throttle.hw_thermal": Reading(value=12)})]

    assert tier(measured) is Tier.C
    assert "hw_thermal moved in pass 7" in evidence(measured)


def test_a_counter_that_cannot_be_read_moves_nothing() -> None:
    assert tier(windows(telemetry={"throttle.hw_thermal": Reading(error="NVML: Not Supported")})) is Tier.A


def test_a_hardware_throttle_reason_in_any_sample_is_tier_c() -> None:
    reasons = (0,) * 29 + (REASON_HW_THERMAL,)

    assert tier([*windows(7), a_window(7, n=30, throttle_reasons=reasons)]) is Tier.C


def test_a_clock_that_varies_by_more_than_three_percent_is_tier_c() -> None:
    swinging = (1980, 1800) * 15

    assert tier(windows(sm_clock_mhz=swinging), regime=ClockRegime.FREE) is Tier.C
    assert "varied by 4.8%" in evidence(windows(sm_clock_mhz=swinging), regime=ClockRegime.FREE)


def test_without_telemetry_nothing_can_be_trusted() -> None:
    unread = windows(sm_clock_mhz=(None,) * 30, throttle_reasons=(None,) * 30)

    assert tier(unread) is Tier.C
    assert "no telemetry" in evidence(unread)


def test_events_below_their_floor_are_tier_c() -> None:
    assert tier(windows(median_ms=0.004), timer=Timer.EVENTS) is Tier.C
    assert tier(windows(median_ms=0.004, inner_reps=5), timer=Timer.EVENTS) is Tier.A


def test_windows_that_share_a_process_are_not_tier_a() -> None:
    assert tier(windows(pid=77)) is Tier.B
    assert "share a process" in evidence(windows(pid=77))


def test_fewer_than_thirty_samples_are_not_tier_a() -> None:
    few = [a_window(i, samples_ms=(0.25, 0.26, 0.25)) for i in range(8)]

    assert tier(few) is Tier.B
    assert "24 samples, tier A needs 30" in evidence(few)


def test_more_than_a_fifth_left_out_is_not_tier_a() -> None:
    some = windows(exclusions=("low",) * 6 + (None,) * 24)
    more = windows(exclusions=("low",) * 7 + (None,) * 23)

    assert tier(some) is Tier.A
    assert tier(more) is Tier.B


def test_kept_samples_that_something_limited_are_not_tier_a() -> None:
    measured = windows(throttle_reasons=(REASON_SW_POWER_CAP,) * 30)

    assert tier(measured) is Tier.B
    assert "limited: power limit" in evidence(measured)


def test_a_software_counter_is_accounted_for_by_the_samples_left_out() -> None:
    moved = {"throttle.power_cap": Reading(value=5000)}

    assert tier(windows(telemetry=moved)) is Tier.B
    assert tier(windows(telemetry=moved, exclusions=("low",) + (None,) * 29)) is Tier.A


def test_an_invalid_window_is_no_evidence() -> None:
    measured = [*windows(6), a_window(6, throttle_reasons=(REASON_HW_THERMAL,) * 30, invalid="other process")]

    assert tier(measured) is Tier.A


def test_the_reference_is_the_clock_most_undisturbed_samples_ran_at() -> None:
    samples = [(1980, 0)] * 5 + [(1500, REASON_SW_POWER_CAP)] * 20

    assert clock_band(samples) == ClockBand(1980, refuses_limited=True)


def test_where_everything_is_limited_the_commonest_clock_is_the_reference() -> None:
    samples = [(1500, REASON_SW_POWER_CAP)] * 20 + [(1600, REASON_SW_POWER_CAP)]
    band = clock_band(samples)

    assert band == ClockBand(1500, refuses_limited=False)
    assert band.exclusion(1500, REASON_SW_POWER_CAP) is None


def test_no_clock_means_no_band_and_nothing_left_out() -> None:
    assert clock_band([(None, None)] * 3) == NO_BAND
    assert NO_BAND.exclusion(900, REASON_SW_POWER_CAP) is None


@pytest.mark.parametrize(
    ("clock", "reasons", "why"),
    [
        (1980, 0, None),
        (1950, 0, None),
        (2010, 0, None),
        (1949, 0, "SM clock 1949 MHz, 1980 MHz expected"),
        (1700, REASON_SW_POWER_CAP, "SM clock 1700 MHz, 1980 MHz expected (power limit)"),
        (1980, REASON_SW_POWER_CAP, "SM clock about to fall (power limit)"),
        (None, None, None),
    ],
)
def test_a_sample_is_left_out_for_its_clock_alone(
    clock: int | None, reasons: int | None, why: str | None
) -> None:
    assert ClockBand(1980, refuses_limited=True).exclusion(clock, reasons) == why


def test_thresholds_other_than_the_defaults_decide_and_stand_with_the_evidence() -> None:
    few = [a_window(i, n=4) for i in range(6)]
    strict = grade(few, timer=Timer.CUPTI, regime=ClockRegime.HELD)
    loose = grade(few, timer=Timer.CUPTI, regime=ClockRegime.HELD, rule=TierRule(samples_min=20))

    assert (strict.tier, strict.evidence) == (Tier.B, ("24 samples, tier A needs 30",))
    assert loose.tier is Tier.A
    assert loose.evidence[-1] == "graded by samples_min 20 instead of 30"


def test_fewer_windows_than_an_interval_needs_are_no_rule() -> None:
    with pytest.raises(RecordInvalid, match="windows_min is 5: give a whole number from 6 to 1000 windows"):
        TierRule(windows_min=5)
