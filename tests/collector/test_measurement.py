"""From a worker's messages to a measurement: what is left out, what is folded, what is pointed out."""

from __future__ import annotations

from typing import Any

import pytest

from collector.loaded import CaseInfo
from collector.measurement import failure_of, measurements_of
from collector.pacing import REASON_SW_POWER_CAP
from store.records import (
    CacheState,
    ClockRegime,
    FoldStatus,
    Kernel,
    Measurement,
    Quantity,
    Reading,
    Stage,
    Tier,
    Timer,
)

CASE = CaseInfo(
    key='["softmax",{"rows":1024}]',
    benchmark="softmax",
    parameters={"rows": 1024},
    label="softmax[rows=1024]",
    source="suites/example.py:12",
    subject='["softmax",{"rows":1024}]',
    tags=("memory",),
    time_limit_s=60.0,
    flops=4e7,
    bytes_moved=3e7,
    renamed_from="soft_max",
)
SOFTMAX = ["softmax", [1024, 1, 1], [128, 1, 1], [0, 0, 0], 40, 0, 1]
FALLBACK = ["softmax_slow", [1024, 1, 1], [128, 1, 1], [0, 0, 0], 64, 0, 3]


def a_message(
    pass_index: int = 0, *, samples_ms: list[float] | None = None, **changes: Any
) -> dict[str, Any]:
    """A window as the worker sends it, at a steady 1980 MHz."""
    samples = [0.25] * 40 if samples_ms is None else samples_ms
    n = len(samples)
    return {
        "pass_index": pass_index,
        "position": 2,
        "pid": 100 + pass_index,
        "started_at": "2026-03-02T09:00:00+00:00",
        "quantity": "device_busy",
        "cold": True,
        "resolution_ms": 3.2e-5,
        "samples_ms": samples,
        "latency_ms": samples,
        "sum_ms": samples,
        "copy_ms": [0.0] * n,
        "n_kernels": [1] * n,
        "inner_reps": 1,
        "launches": [SOFTMAX],
        "pause_ms": [0.0] * n,
        "sm_clock_mhz": [1980] * n,
        "throttle_reasons": [0] * n,
        "warmup_calls": 25,
        "warmup_ms": 26.0,
        "attempts": 1,
        "telemetry": {"temperature_c": {"value": 41}, "power_w": {"error": "NVMLError: Not Supported"}},
        "invalid": None,
    } | changes


def some_messages(count: int = 8, **changes: Any) -> list[dict[str, Any]]:
    return [a_message(index, **changes) for index in range(count)]


def measured(
    messages: list[dict[str, Any]],
    *,
    timer: Timer = Timer.CUPTI,
    regime: ClockRegime = ClockRegime.HELD,
    proven_mhz: int | None = None,
) -> Measurement:
    """The only measurement that these windows make."""
    (measurement,) = measurements_of(CASE, messages, timer=timer, regime=regime, proven_mhz=proven_mhz)
    return measurement


def test_good_windows_make_one_measurement_of_tier_a() -> None:
    measurement = measured(some_messages())

    assert measurement.case.label == "softmax[rows=1024]"
    assert measurement.interval.status is FoldStatus.OK
    assert measurement.interval.center == pytest.approx(0.25)
    assert (measurement.interval.windows, measurement.tier) == (8, Tier.A)
    assert (measurement.quantity, measurement.cache_state) == (Quantity.DEVICE_BUSY, CacheState.COLD)
    assert (measurement.flops, measurement.bytes_moved) == (4e7, 3e7)
    assert measurement.windows[3].pass_index == 3
    assert measurement.windows[0].telemetry == {
        "temperature_c": Reading(value=41),
        "power_w": Reading(error="NVMLError: Not Supported"),
    }
    assert measurement.renamed_from == "soft_max"


def test_a_sample_at_another_clock_is_kept_marked_and_left_out_of_the_fold() -> None:
    low = a_message(0, samples_ms=[0.25] * 39 + [0.50], sm_clock_mhz=[1980] * 39 + [1500])

    measurement = measured([low, *some_messages()[1:]])

    window = measurement.windows[0]
    assert len(window.samples_ms) == 40
    assert window.exclusions == (None,) * 39 + ("SM clock 1500 MHz, 1980 MHz expected",)
    assert window.kept_ms == (0.25,) * 39


def test_no_sample_is_left_out_for_its_time() -> None:
    wild = a_message(0, samples_ms=[0.25] * 20 + [25.0] * 20)

    measurement = measured([wild, *some_messages()[1:]])

    assert all(why is None for window in measurement.windows for why in window.exclusions)


@pytest.mark.parametrize("samples_ms", [[0.20, 0.25, 0.30], [0.30, 0.25, 0.20], [9.0, 0.001, 0.25]])
def test_what_is_left_out_does_not_change_with_the_times(samples_ms: list[float]) -> None:
    messages = [
        a_message(index, samples_ms=samples_ms, sm_clock_mhz=[1980, 1905, 1980],
                  throttle_reasons=[0, 0, REASON_SW_POWER_CAP])
        for index in range(6)
    ]  # fmt: skip

    exclusions = {window.exclusions for window in measured(messages).windows}

    assert exclusions == {
        (None, "SM clock 1905 MHz, 1980 MHz expected", "SM clock about to fall (power limit)")
    }


def test_free_clocks_leave_nothing_out() -> None:
    messages = some_messages(samples_ms=[0.25, 0.26], sm_clock_mhz=[1980, 900])

    measurement = measured(messages, regime=ClockRegime.FREE)

    assert all(window.exclusions == (None, None) for window in measurement.windows)


def test_a_locked_clock_is_the_reference_however_many_samples_miss_it() -> None:
    messages = some_messages(samples_ms=[0.25, 0.26, 0.26], sm_clock_mhz=[1500, 1410, 1410])

    measurement = measured(messages, regime=ClockRegime.LOCKED, proven_mhz=1500)

    assert all(window.kept_ms == (0.25,) for window in measurement.windows)


def test_an_invalid_window_is_kept_with_its_reason_and_not_folded() -> None:
    disturbed = a_message(0, samples_ms=[9.0] * 40, sm_clock_mhz=[900] * 40, invalid="2 other processes")

    measurement = measured([disturbed, *some_messages()[1:]])

    assert measurement.windows[0].invalid == "2 other processes"
    assert measurement.interval.windows == 7
    assert measurement.interval.high == pytest.approx(0.25, rel=1e-3)


def test_the_clock_of_an_invalid_window_does_not_decide_the_band() -> None:
    disturbed = [a_message(index, sm_clock_mhz=[900] * 40, invalid="2 other processes") for index in range(7)]

    measurement = measured([*disturbed, a_message(7)])

    assert len(measurement.windows[7].kept_ms) == 40


def test_a_window_of_which_no_sample_is_left_does_not_count() -> None:
    slow = a_message(0, sm_clock_mhz=[900] * 40)

    measurement = measured([slow, *some_messages()[1:]])

    assert (measurement.interval.windows, len(measurement.windows)) == (7, 8)


def test_windows_that_are_all_invalid_make_a_measurement_without_a_number() -> None:
    measurement = measured(some_messages(invalid="2 other processes"))

    assert measurement.interval.center is None
    assert measurement.interval.status is FoldStatus.REFUSED
    assert measurement.tier is Tier.C


def test_warm_and_cold_windows_of_one_case_are_two_measurements() -> None:
    messages = [*some_messages(4), *some_messages(4, cold=False, samples_ms=[0.125] * 40)]

    cold, warm = measurements_of(CASE, messages, timer=Timer.EVENTS, regime=ClockRegime.FREE)

    assert (cold.cache_state, warm.cache_state) == (CacheState.COLD, CacheState.WARM)
    assert cold.interval.center == pytest.approx(0.25)
    assert warm.interval.center == pytest.approx(0.125)


def test_kernels_are_those_that_most_windows_agree_on() -> None:
    messages = [a_message(0, launches=[FALLBACK]), *some_messages()[1:]]

    assert measured(messages).kernels == (
        Kernel(name="softmax", grid=(1024, 1, 1), block=(128, 1, 1), cluster=(0, 0, 0), registers=40,
               shared_bytes=0, count=1),
    )  # fmt: skip


def test_a_timer_that_sees_no_kernels_names_none() -> None:
    messages = some_messages(
        quantity="elapsed", launches=[], n_kernels=[], copy_ms=[], latency_ms=[], sum_ms=[]
    )

    assert measured(messages, timer=Timer.EVENTS).kernels == ()


def test_copies_of_more_than_a_hundredth_are_pointed_out() -> None:
    measurement = measured(some_messages(copy_ms=[0.05] * 40))

    assert measurement.tier_evidence[-1] == (
        "copies and memsets take 20% on top of the kernels and are not counted: "
        "count_copies=True makes them part of the number"
    )
    assert measurement.tier is Tier.A


@pytest.mark.parametrize(("quantity", "copy_ms"), [("device_busy", 0.002), ("device_busy_and_copies", 0.05)])
def test_copies_that_are_counted_or_hardly_there_are_not_pointed_out(quantity: str, copy_ms: float) -> None:
    measurement = measured(some_messages(quantity=quantity, copy_ms=[copy_ms] * 40))

    assert not any("copies" in sentence for sentence in measurement.tier_evidence)


def test_the_coarsest_resolution_of_the_windows_is_the_measurements() -> None:
    messages = [a_message(0, resolution_ms=5e-4), *some_messages()[1:]]

    assert measured(messages).resolution_ms == pytest.approx(5e-4)


def test_the_same_messages_give_the_same_measurement() -> None:
    assert measured(some_messages()) == measured(some_messages())


def a_failure_message(**changes: Any) -> dict[str, Any]:
    return {
        "case": CASE.key,
        "stage": "worker",
        "kind": "signal-11",
        "message": "killed",
        "source": "suites/example.py:12",
        "log": "last words",
        "pass_index": 3,
    } | changes


def test_a_failure_names_its_case_with_its_parameters() -> None:
    failure = failure_of(a_failure_message(), {CASE.key: CASE})

    assert failure.case is not None
    assert failure.case.label == "softmax[rows=1024]"
    assert (failure.stage, failure.kind, failure.log, failure.pass_index) == (
        Stage.WORKER, "signal-11", "last words", 3,
    )  # fmt: skip


def test_a_suite_that_could_not_be_imported_is_a_failure_without_a_case() -> None:
    failure = failure_of(a_failure_message(case=None, stage="import", pass_index=None), {})

    assert (failure.case, failure.stage, failure.pass_index) == (None, Stage.IMPORT, None)
