"""A window: what happens in which order, and what costs it another attempt."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING

import pytest

from collector.errors import RecordsLostError
from collector.pacing import REASON_SW_POWER_CAP, Pacer
from collector.suspend import slept_s
from collector.timers import Timings
from collector.window import ATTEMPTS, Budget, MeasuredWindow, Rig, measure_window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from collector.protocol import JsonReading

FULL_SPEED = (1980, 0)


class Diary:
    """A timer, a device and an NVML that write down what they are asked to do."""

    warmup_calls_min = 10
    settles = True
    index = 0

    def __init__(self, clocks: Sequence[tuple[int | None, int | None]] = ()) -> None:
        self.events: list[str] = []
        self.clocks = deque(clocks)
        self.losses = 0
        self.enlarged = 0
        self.counters = deque[dict[str, int | None]]()
        self.processes: int | None = 1
        self._timed = 0

    @contextlib.contextmanager
    def preparing(self) -> Iterator[None]:
        self.events.append("prepare")
        yield
        self.events.append("prepared")

    def begin(self, iterations: int, call: Callable[[], object]) -> None:
        del call
        self.events.append(f"begin {iterations}")
        self._timed = 0

    def time(self, iteration: int, call: Callable[[], object]) -> None:
        self.events.append(f"time {iteration}")
        call()
        self._timed += 1

    def finish(self) -> Timings:
        if self.losses:
            self.losses -= 1
            raise RecordsLostError("CUPTI dropped 3 records of this window")
        return Timings(
            quantity="device_busy", samples_ms=[0.25] * self._timed, resolution_ms=3.2e-5, cold=True
        )

    def enlarge(self) -> None:
        self.enlarged += 1

    def drain(self) -> None:
        self.events.append("drain")

    def clear_cache(self) -> None:
        self.events.append("clear")

    def settle(self) -> None:
        self.events.append("settle")

    def alive(self) -> bool:
        return True

    def clock_and_reasons(self) -> tuple[int | None, int | None]:
        self.events.append("clock")
        return self.clocks.popleft() if self.clocks else FULL_SPEED

    def throttle_counters(self) -> Mapping[str, int | None]:
        return self.counters.popleft() if self.counters else {"power_cap": 0}

    def window_readings(self) -> Mapping[str, JsonReading]:
        return {"temperature_c": {"value": 40}}

    def process_count(self) -> int | None:
        return self.processes


def measure(diary: Diary, *, pacer: Pacer | None = None, iterations: int | None = 3) -> MeasuredWindow:
    rig = Rig(
        timer=diary,
        device=diary,
        telemetry=diary,
        pacer=pacer or Pacer(hold=True),
        budget=Budget(warmup_ms=0.0),
        iterations=iterations,
    )
    return measure_window(lambda: diary.events.append("call"), rig)


def test_every_iteration_clears_the_cache_drains_settles_calls_and_reads_the_clock_in_this_order() -> None:
    diary = Diary()

    measure(diary)

    loop = diary.events[diary.events.index("begin 3") + 1 :]
    one = ["prepare", "clear", "drain", "settle", "prepared", "time 0", "call", "clock"]
    assert loop[: len(one)] == one
    assert [event for event in loop if event.startswith("time")] == ["time 0", "time 1", "time 2"]


def test_a_timer_that_would_count_the_waking_up_gets_a_device_that_is_awake() -> None:
    diary = Diary()
    diary.settles = False

    measure(diary)

    assert "settle" not in diary.events


def test_warming_up_follows_the_timed_loop_and_makes_at_least_ten_calls() -> None:
    diary = Diary()

    window = measure(diary)

    warmup = diary.events[: diary.events.index("begin 3")]
    assert window.warmup_calls == 10
    assert warmup.count("clear") == 10
    assert warmup.count("call") == 10 + 3  # and three calls to calibrate


def test_warming_up_goes_on_until_the_clock_has_settled() -> None:
    diary = Diary(clocks=[(345, 0)] * 4 + [(1200, 0), (1600, 0)] + [FULL_SPEED] * 2 + [(1700, 0)] * 5)

    window = measure(diary)

    assert window.warmup_calls == 13 + 5  # five steady readings after the last low one


def test_a_fall_costs_one_sample_and_the_loop_waits_for_the_clock() -> None:
    limited = (1700, REASON_SW_POWER_CAP)
    diary = Diary(clocks=[FULL_SPEED] * 10 + [FULL_SPEED, limited, limited, limited])

    window = measure(diary, iterations=6)

    assert window.progress.sm_clock_mhz == [1980, 1700, 1980, 1980, 1980, 1980]
    assert window.progress.throttle_reasons[1] == REASON_SW_POWER_CAP
    assert window.progress.pause_ms[:2] == [0.0, 0.0]
    assert set(window.progress.pause_ms[2:]) == {1.0}
    between = diary.events[diary.events.index("time 1") : diary.events.index("time 2")]
    assert between.count("call") == 1 + 2 + 5  # the sample, two limited calls, five steady ones


def test_free_clocks_are_measured_as_they_are() -> None:
    diary = Diary(clocks=[FULL_SPEED] * 10 + [FULL_SPEED, (1700, REASON_SW_POWER_CAP)] + [(1700, 4)] * 4)

    window = measure(diary, pacer=Pacer(hold=False), iterations=4)

    assert window.progress.sm_clock_mhz == [1980, 1700, 1700, 1700]
    assert window.progress.pause_ms == [0.0] * 4


def test_lost_records_cost_the_window_and_ask_for_a_larger_buffer() -> None:
    diary = Diary()
    diary.losses = 2

    window = measure(diary)

    assert (window.attempts, diary.enlarged) == (3, 2)
    assert diary.events.count("begin 3") == 3


def test_records_lost_three_times_are_an_error_and_no_number() -> None:
    diary = Diary()
    diary.losses = ATTEMPTS

    with pytest.raises(RecordsLostError, match="dropped 3 records"):
        measure(diary)


def test_a_limit_that_only_the_counters_saw_costs_the_window_and_lengthens_the_pause() -> None:
    diary = Diary()
    diary.counters.extend(
        [{"power_cap": 0}, {"power_cap": 70_000}, {"power_cap": 70_000}, {"power_cap": 70_000}]
    )

    window = measure(diary)

    assert window.attempts == 2
    assert window.telemetry["throttle.power_cap"] == {"value": 0}
    assert (window.next_pause_ms, window.too_short_ms) == (1.0, 0.0)


def test_a_counter_that_keeps_moving_is_told_and_does_not_measure_for_ever() -> None:
    diary = Diary()
    diary.counters.extend({"power_cap": 1000 * step} for step in range(20))

    window = measure(diary)

    assert window.attempts == ATTEMPTS
    assert window.telemetry["throttle.power_cap"] == {"value": 1000}


def test_a_counter_that_cannot_be_read_is_told_as_an_error_and_never_as_zero() -> None:
    diary = Diary()
    diary.counters.extend([{"power_cap": None}, {"power_cap": None}])

    reading = measure(diary).telemetry["throttle.power_cap"]

    assert "error" in reading
    assert "value" not in reading


def test_another_process_on_the_gpu_makes_the_window_invalid() -> None:
    diary = Diary()
    diary.processes = 3

    window = measure(diary)

    assert window.invalid is not None
    assert "2 other processes" in window.invalid
    assert len(window.timings.samples_ms) == 3


def test_processes_that_cannot_be_listed_are_no_proof_of_anything() -> None:
    diary = Diary()
    diary.processes = None

    assert measure(diary).invalid is None


@pytest.mark.parametrize(
    ("cost_ms", "iterations"), [(0.001, 200), (0.5, 200), (1.0, 100), (9.9, 10), (50.0, 10), (1000.0, 10)]
)
def test_the_budget_decides_the_iterations_between_its_bounds(cost_ms: float, iterations: int) -> None:
    assert Budget().iterations(cost_ms) == iterations


def test_a_number_of_iterations_that_the_benchmark_asks_for_is_kept() -> None:
    assert len(measure(Diary(), iterations=17).timings.samples_ms) == 17


def test_a_cost_that_the_clock_cannot_tell_asks_for_the_most_iterations() -> None:
    assert Budget().iterations(0.0) == 200


def test_a_window_after_a_suspend_is_kept_and_does_not_count() -> None:
    diary = Diary()
    rig = Rig(
        timer=diary, device=diary, telemetry=diary, pacer=Pacer(hold=True), iterations=3,
        slept_s=slept_s() - 60,
    )  # fmt: skip

    window = measure_window(lambda: None, rig)

    assert window.invalid is not None
    assert "the machine was suspended for 60.0 s" in window.invalid
    assert len(window.timings.samples_ms) == 3


def test_a_window_survives_the_way_to_its_parent() -> None:
    message = measure(Diary()).to_json()

    assert message["samples_ms"] == [0.25, 0.25, 0.25]
    assert message["pacing"] == [0.0, 0.0]
    assert message["cold"] is True
    assert {"phase.loop_ms", "phase.read_ms", "temperature_c"} <= set(message["telemetry"])
