"""The pause follows the clock: none where it holds, longer where it fell, shorter again with care."""

from __future__ import annotations

import pytest

from collector.pacing import (
    PAUSE_MAX_MS,
    REASON_APPLICATION_CLOCKS,
    REASON_HW_THERMAL,
    REASON_IDLE,
    REASON_SW_POWER_CAP,
    SETTLED_AFTER,
    Pacer,
    least_pause_ms,
    reason_names,
)


def settle(pacer: Pacer, clock_mhz: int = 1980) -> None:
    for _ in range(SETTLED_AFTER):
        pacer.observe(clock_mhz, 0)


def test_a_clock_that_holds_needs_no_pause() -> None:
    pacer = Pacer(hold=True)

    for _ in range(200):
        pacer.observe(1980, 0)

    assert pacer.settled
    assert pacer.pause_ms == pacer.next_pause_ms == 0.0


def test_a_fall_from_a_settled_clock_begins_a_pause_and_another_doubles_it() -> None:
    pacer = Pacer(hold=True)
    pauses = []

    for _ in range(3):
        settle(pacer)
        pacer.observe(1755, REASON_SW_POWER_CAP)
        pauses.append(pacer.pause_ms)

    assert pauses == [1.0, 2.0, 4.0]


def test_a_clock_that_has_not_recovered_yet_is_no_new_evidence() -> None:
    pacer = Pacer(hold=True)
    settle(pacer)

    for _ in range(50):
        pacer.observe(1500, REASON_SW_POWER_CAP)

    assert pacer.pause_ms == 1.0
    assert not pacer.settled


def test_a_clock_that_is_low_from_what_ran_before_is_not_this_calls_doing() -> None:
    pacer = Pacer(hold=True)

    for _ in range(20):
        pacer.observe(1500, REASON_SW_POWER_CAP)
    settle(pacer)

    assert pacer.pause_ms == 0.0


def test_a_limit_is_a_fall_even_before_the_clock_shows_it() -> None:
    pacer = Pacer(hold=True)
    settle(pacer)

    pacer.observe(1980, REASON_SW_POWER_CAP)

    assert pacer.pause_ms == 1.0


@pytest.mark.parametrize(
    "benign", [REASON_IDLE, REASON_APPLICATION_CLOCKS, REASON_IDLE | REASON_APPLICATION_CLOCKS]
)
def test_idling_and_application_clocks_are_no_limit(benign: int) -> None:
    pacer = Pacer(hold=True)

    for _ in range(10):
        pacer.observe(1980, benign)

    assert pacer.settled


def test_clocks_within_thirty_megahertz_are_one_clock() -> None:
    pacer = Pacer(hold=True)
    settle(pacer)

    pacer.observe(1950, 0)
    assert pacer.pause_ms == 0.0
    pacer.observe(1949, 0)
    assert pacer.pause_ms == 1.0


def test_the_pause_has_an_end() -> None:
    pacer = Pacer(hold=True)

    for _ in range(20):
        settle(pacer)
        pacer.observe(1000, REASON_HW_THERMAL)

    assert pacer.pause_ms == PAUSE_MAX_MS


def test_a_pause_that_held_is_tried_shorter_but_not_as_short_as_one_that_failed() -> None:
    pauses = []
    pause, too_short = 8.0, 4.0
    for _ in range(6):
        pacer = Pacer(hold=True, pause_ms=pause, too_short_ms=too_short)
        settle(pacer)
        pause, too_short = pacer.next_pause_ms, pacer.too_short_ms
        pauses.append(pause)

    assert pauses == [6.0, 5.0, 5.0, 5.0, 5.0, 5.0]


def test_a_pause_that_something_else_had_caused_fades_away() -> None:
    pause = 1.0
    pauses = []
    for _ in range(4):
        pacer = Pacer(hold=True, pause_ms=pause)
        settle(pacer)
        pause = pacer.next_pause_ms
        pauses.append(pause)

    assert pauses == [0.75, 0.5625, 0.0, 0.0]


def test_a_pause_that_failed_is_not_shortened() -> None:
    pacer = Pacer(hold=True, pause_ms=4.0)
    settle(pacer)
    pacer.observe(1700, 0)

    assert pacer.next_pause_ms == 8.0
    assert pacer.too_short_ms == 4.0


@pytest.mark.parametrize(
    ("call_ms", "pause_ms"),
    [(0.002, 0.0), (0.1, 0.0), (0.11, 0.06), (0.205, 0.63), (0.6, 3.0), (1.3, 7.2), (1000.0, 10.0)],
)
def test_the_least_pause_follows_the_length_of_the_call_alone(call_ms: float, pause_ms: float) -> None:
    assert least_pause_ms(call_ms) == pytest.approx(pause_ms)


def test_a_call_one_percent_longer_is_paused_almost_alike() -> None:
    for call_ms in (0.099, 0.1, 0.15, 0.3, 0.9, 1.76, 5.0):
        assert least_pause_ms(1.01 * call_ms) - least_pause_ms(call_ms) <= 0.11


def test_what_was_learnt_never_goes_below_the_least_pause() -> None:
    pacer = Pacer(hold=True, pause_ms=0.0)
    pacer.begin(0.6)
    settle(pacer)

    assert pacer.pause_ms == pacer.next_pause_ms == 3.0
    pacer.observe(1700, REASON_SW_POWER_CAP)
    assert pacer.pause_ms == 6.0


def test_a_longer_pause_that_was_learnt_is_kept() -> None:
    pacer = Pacer(hold=True, pause_ms=8.0)
    pacer.begin(0.6)

    assert pacer.pause_ms == 8.0


def test_without_holding_nothing_is_ever_paused() -> None:
    pacer = Pacer(hold=False)
    pacer.begin(2.0)
    settle(pacer)

    pacer.observe(1200, REASON_SW_POWER_CAP)

    assert pacer.pause_ms == 0.0


def test_without_telemetry_there_is_nothing_to_wait_for() -> None:
    pacer = Pacer(hold=True)

    for _ in range(SETTLED_AFTER):
        pacer.observe(None, None)

    assert pacer.settled


def test_reasons_are_named_and_unknown_bits_are_not_hidden() -> None:
    assert reason_names(0) == "none"
    assert reason_names(REASON_SW_POWER_CAP | REASON_HW_THERMAL) == "power limit, hardware thermal limit"
    assert reason_names(0x800) == "unknown reason 0x800"
