"""``bench_kernel``: one sample an iteration from CUPTI's records, or one of three errors."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fake_cupti import FakeCupti
from gpu_world import GpuWorld, WorldCupti, a_gpu_world

from collector import instrument
from collector.attribution import PREPARE_ID
from collector.errors import CuptiError, DisturbedIterationError
from collector.instrument import (
    AttributionError,
    Budget,
    MachineError,
    OffThreadLaunchError,
    RecordsLostError,
    Sample,
    bench_kernel,
)
from collector.traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.records import Trace

KIB = 1024
TRACES = sorted((Path(__file__).parents[1] / "data" / "h200" / "traces").glob("*.trace.json.gz"))


@pytest.fixture(name="world")
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuWorld:
    return a_gpu_world(tmp_path, monkeypatch)


def bench(fn: Callable[..., object], **how: Any) -> list[Sample]:
    """Twelve iterations."""
    return bench_kernel(fn, **({"iterations": 12} | how))


def in_a_thread(work: Callable[[], object]) -> Callable[[], None]:
    """The same work, launched by another thread."""

    def call() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    return call


# Samples


def test_there_is_one_sample_an_iteration_with_the_time_the_device_was_busy(world: GpuWorld) -> None:
    samples = bench(world.kernel(1.95))

    assert len(samples) == 12
    assert {s.device_busy_ms for s in samples} == {0.00195}
    assert {(s.n_kernels, s.copy_ms, s.timing, s.cache_state) for s in samples} == {(1, 0.0, "cupti", "cold")}
    assert {(s.sm_clock_mhz, s.throttle_reasons, s.fallback_reason) for s in samples} == {(1980, 0, None)}


def test_gaps_between_kernels_are_in_the_latency_and_not_in_the_busy_time(world: GpuWorld) -> None:
    def two_kernels() -> None:
        world.launch(1.0)
        world.now_ns += 35_000  # a late host
        world.launch(1.0)

    (sample, *_) = bench(two_kernels)

    assert sample.device_busy_ms == pytest.approx(0.002)
    assert sample.latency_ms > 0.035
    assert sample.n_kernels == 2


def test_arguments_are_passed_on(world: GpuWorld) -> None:
    assert {s.device_busy_ms for s in bench(world.launch, args=(4.0,))} == {0.004}
    assert {s.device_busy_ms for s in bench(world.launch, kwargs={"duration_us": 5.0})} == {0.005}


def test_the_number_of_kernels_may_vary_between_iterations(world: GpuWorld) -> None:
    calls = iter(range(10_000))

    def varying() -> None:
        for _ in range(1 + next(calls) % 2):
            world.launch(1.0)

    assert {s.n_kernels for s in bench(varying)} == {1, 2}


@pytest.mark.usefixtures("world")
@pytest.mark.filterwarnings("ignore:copies and memsets take")
@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name.split(".")[0])
def test_recorded_calls_of_an_h200_give_the_samples_they_gave_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace, message = read_trace(path)
    monkeypatch.setattr("collector.instrument.kernels.recording_session", lambda _device: Replay(trace))
    copies = message["quantity"] == "device_busy_and_copies"

    samples = bench_kernel(lambda: None, iterations=len(trace.bounds), count_copies=copies)

    assert [s.device_busy_ms for s in samples] == message["samples_ms"]
    assert [s.latency_ms for s in samples] == message["latency_ms"]
    assert [s.n_kernels for s in samples] == message["n_kernels"]
    assert [s.copy_ms for s in samples] == message["copy_ms"]


class Replay:
    """A session that says what was recorded elsewhere, whatever is called."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._times = iter([time for bound in trace.bounds for time in bound])

    def now(self) -> int:
        return next(self._times)

    def take(self) -> Trace:
        return self._trace

    def push(self, external_id: int) -> None:
        """Nothing is launched that could carry it."""

    def pop(self) -> None:
        """Nor does it end."""

    resume = pause = discard = pop


# How many, and in which order


def test_the_budget_is_that_of_the_page() -> None:
    assert inspect.signature(bench_kernel).parameters["budget"].default == Budget(
        warmup_ms=25.0, measure_ms=100.0, iterations_min=10, iterations_max=200
    )


@pytest.mark.parametrize(
    ("cost_ms", "iterations"), [(0.01, 200), (0.5, 200), (1.0, 100), (9.0, 11), (10.1, 10), (500.0, 10)]
)
def test_the_budget_becomes_a_count_between_ten_and_two_hundred(cost_ms: float, iterations: int) -> None:
    assert Budget().iterations(cost_ms) == iterations


def test_a_short_call_gets_up_to_two_hundred_samples_and_a_long_one_ten(world: GpuWorld) -> None:
    assert 10 <= len(bench_kernel(world.kernel(1.0))) <= 200
    assert len(bench_kernel(world.kernel(1.0), budget=Budget(measure_ms=0.001))) == 10
    assert len(bench_kernel(world.kernel(1.0), iterations=500)) == 500


def test_three_calls_calibrate_and_ten_warm_up_before_anything_is_recorded(world: GpuWorld) -> None:
    recorded = []

    def call() -> None:
        recorded.append(world.cupti.recording)
        world.launch(1.0)

    bench(call, budget=Budget(warmup_ms=0.0))

    assert recorded == [False] * (3 + 10) + [True] * 12


def test_each_iteration_clears_l2_drains_calls_drains_and_reads_the_clock(world: GpuWorld) -> None:
    bench(world.kernel(1.0))

    one = ["reset persisting lines", "flush", "drain", "kernel", "drain", "clock"]
    assert world.log[-12 * len(one) :] == 12 * one


def test_without_flushing_the_samples_say_that_the_cache_was_warm(world: GpuWorld) -> None:
    samples = bench(world.kernel(1.0), flush_l2=False)

    assert {s.cache_state for s in samples} == {"warm"}
    assert "flush" not in world.log


def test_the_flush_runs_under_an_id_of_its_own_and_is_never_counted(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed: list[tuple[int, bool]] = []
    push = WorldCupti.activity_push_external_correlation_id

    def note(self: WorldCupti, kind: Any, number: int) -> None:
        pushed.append((number, self.recording))
        push(self, kind, number)

    monkeypatch.setattr(WorldCupti, "activity_push_external_correlation_id", note)
    samples = bench(world.kernel(1.0))

    in_loop = [number for number, recording in pushed[-24:] if recording]
    assert in_loop == [number for i in range(12) for number in (PREPARE_ID, i)]
    assert {s.n_kernels for s in samples} == {1}


def test_records_are_read_once_after_the_loop(world: GpuWorld) -> None:
    bench(world.kernel(1.0))
    flushes_before = len(world.cupti.flushed_bytes)

    bench(world.kernel(1.0))

    assert len(world.cupti.flushed_bytes) == flushes_before + 1


# Errors instead of numbers


def test_lost_records_cost_the_whole_window_which_is_measured_again_with_a_buffer_of_four_times(
    world: GpuWorld,
) -> None:
    bench(world.kernel(1.0))  # the session is open and proven from here on
    world.cupti.drops_below = 1024 * KIB

    samples = bench(world.kernel(1.0))

    assert world.cupti.flushed_bytes[-2:] == [256 * KIB, 1024 * KIB]
    assert {s.attempts for s in samples} == {2}
    assert len(samples) == 12


def test_records_lost_three_times_are_an_error_and_the_next_measurement_starts_small(world: GpuWorld) -> None:
    bench(world.kernel(1.0))
    world.cupti.flushed_bytes.clear()
    world.cupti.drops_below = 1 << 30

    with pytest.raises(RecordsLostError, match="CUPTI dropped 1 records"):
        bench(world.kernel(1.0))
    assert world.cupti.flushed_bytes == [256 * KIB, 1024 * KIB, 4096 * KIB]

    world.cupti.drops_below = 0
    bench(world.kernel(1.0))
    assert world.cupti.flushed_bytes[-1] == 256 * KIB


def test_one_lost_kernel_of_several_is_a_loss_too(world: GpuWorld) -> None:
    """An iteration that still has kernels would otherwise read short."""

    def three_kernels() -> None:
        for _ in range(3):
            world.launch(1.0)

    bench(three_kernels)
    world.cupti.drops_below = 1 << 30

    with pytest.raises(RecordsLostError):
        bench(three_kernels)


def test_a_drop_counter_that_does_not_count_is_not_believed(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.cupti_session.CuptiSession.prove_drop_counter", lambda *_: False)

    assert len(bench(world.kernel(1.0))) == 12
    with pytest.raises(AttributionError, match="cannot say whether records were lost") as caught:
        bench(in_a_thread(world.kernel(1.0)))
    assert not isinstance(caught.value, OffThreadLaunchError)


def test_a_kernel_of_another_thread_is_an_error_with_the_remedy(world: GpuWorld) -> None:
    with pytest.raises(OffThreadLaunchError, match=r"backward_of\(\).*launches_from_any_thread=True"):
        bench(in_a_thread(world.kernel(1.0)))


def test_kernels_of_other_threads_count_where_they_are_allowed(world: GpuWorld) -> None:
    samples = bench(in_a_thread(world.kernel(1.0)), launches_from_any_thread=True)

    assert {(s.device_busy_ms, s.n_kernels) for s in samples} == {(0.001, 1)}


def test_a_call_without_kernels_is_an_error_and_never_zero(world: GpuWorld) -> None:
    del world

    with pytest.raises(AttributionError, match="left no trace on the device"):
        bench(lambda: None)


def test_a_single_iteration_without_kernels_is_an_error(world: GpuWorld) -> None:
    calls = iter(range(10_000))

    with pytest.raises(AttributionError, match="iteration 7 of 12"):
        bench(lambda: None if next(calls) == 3 + 10 + 7 else world.launch(1.0), budget=Budget(warmup_ms=0))


@pytest.mark.parametrize("pushed", [0, 5, 1000, PREPARE_ID])
def test_a_call_that_uses_custom0_is_an_error_whatever_it_pushes(world: GpuWorld, pushed: int) -> None:
    cupti = world.cupti
    custom0 = FakeCupti.ExternalCorrelationKind.CUSTOM0

    def call() -> None:
        world.launch(1.0)
        cupti.activity_push_external_correlation_id(custom0, pushed)
        world.launch(1.0)
        cupti.activity_pop_external_correlation_id(custom0)

    with pytest.raises(AttributionError, match="use CUSTOM1 or CUSTOM2"):
        bench(call)


def test_a_call_that_pops_the_timer_s_id_is_an_error(world: GpuWorld) -> None:
    custom0 = FakeCupti.ExternalCorrelationKind.CUSTOM0

    with pytest.raises(AttributionError, match="use CUSTOM1 or CUSTOM2"):
        bench(lambda: world.cupti.activity_pop_external_correlation_id(custom0))


def test_a_call_may_use_custom1(world: GpuWorld) -> None:
    custom1 = FakeCupti.ExternalCorrelationKind.CUSTOM1

    def call() -> None:
        world.cupti.activity_push_external_correlation_id(custom1, 3)
        world.launch(1.0)
        world.cupti.activity_pop_external_correlation_id(custom1)

    assert len(bench(call)) == 12


def test_the_three_errors_are_distinct_and_have_the_names_of_the_page() -> None:
    assert instrument._CUPTIRecordsLostError is RecordsLostError
    assert instrument._OffThreadLaunchError is OffThreadLaunchError
    assert instrument._CUPTIAttributionError is AttributionError
    assert issubclass(OffThreadLaunchError, AttributionError)
    assert not issubclass(RecordsLostError, AttributionError)


def test_an_error_of_the_call_itself_comes_out_as_it_is_and_recording_is_off(world: GpuWorld) -> None:
    calls = iter(range(10_000))

    def breaks_in_the_loop() -> None:
        world.launch(1.0)
        if next(calls) == 3 + 10 + 4:
            raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes do not match"):
        bench(breaks_in_the_loop, budget=Budget(warmup_ms=0.0))

    assert not world.cupti.recording
    assert len(bench(world.kernel(1.0))) == 12


# Copies


def test_copies_are_pointed_out_because_they_are_not_counted(world: GpuWorld) -> None:
    def writes_back() -> None:
        world.launch(2.0)
        world.copy(1.0)

    with pytest.warns(UserWarning, match=r"copies and memsets take 0.001 ms a call.*count_copies=True"):
        samples = bench(writes_back)
    assert {(s.device_busy_ms, s.copy_ms) for s in samples} == {(0.002, 0.001)}

    counted = bench(writes_back, count_copies=True)
    assert {(s.device_busy_ms, s.copy_ms) for s in counted} == {(0.003, 0.001)}


def test_a_call_of_copies_alone_is_an_error_unless_they_count(world: GpuWorld) -> None:
    with pytest.raises(AttributionError, match="only copies"):
        bench(lambda: world.copy(1.0))

    assert {s.device_busy_ms for s in bench(lambda: world.copy(1.0), count_copies=True)} == {0.001}


# CUDA events only where they are allowed


def test_without_cupti_there_are_no_samples(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)

    with pytest.raises(CuptiError, match="install cupti-python"):
        bench(world.kernel(100.0))
    assert "record" not in world.log


def test_allowed_events_say_so_in_every_sample_and_once_aloud(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupti", None)

    with pytest.warns(UserWarning, match="timed with CUDA events, which compares with no CUPTI sample"):
        samples = bench(world.kernel(100.0), allow_events=True)

    assert len(samples) == 12
    assert {s.timing for s in samples} == {"cuda-events"}
    assert {(s.n_kernels, s.copy_ms) for s in samples} == {(None, None)}
    for sample in samples:
        assert sample.device_busy_ms == sample.latency_ms > 0.1
        assert sample.fallback_reason is not None
        assert sample.fallback_reason.startswith("CuptiError: ")


def test_events_read_more_than_the_kernel_of_a_short_call(world: GpuWorld) -> None:
    records = bench(world.kernel(1.95))
    with pytest.warns(UserWarning, match="OffThreadLaunchError"):
        events = bench(in_a_thread(world.kernel(1.95)), allow_events=True)

    assert events[0].device_busy_ms > 1.5 * records[0].device_busy_ms


def test_allowed_events_hide_no_other_trouble(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def disturbed(*_: object, **__: object) -> None:
        raise DisturbedIterationError("JIT took 3.000 ms inside iteration 0")

    monkeypatch.setattr("collector.timers.attribute", disturbed)

    with pytest.raises(DisturbedIterationError):
        bench(world.kernel(1.0), allow_events=True)


# The session


def test_the_session_is_opened_once_proven_and_switched_off_at_exit(world: GpuWorld) -> None:
    assert world.cupti.calls == []
    bench(world.kernel(1.0))
    bench(world.kernel(1.0))

    assert world.cupti.names().count("register") == 1
    assert world.cupti.flushed_bytes.count(0) == 1  # no buffer at all: the drop counter was proven
    (at_exit,) = world.at_exit
    world.cupti.calls.clear()
    at_exit()
    assert set(world.cupti.arguments_of("disable")) >= {FakeCupti.ActivityKind.CONCURRENT_KERNEL}
    assert world.cupti.names()[-1] == "flush"
    assert "finalize" not in world.cupti.names()


def test_nothing_is_recorded_between_measurements(world: GpuWorld) -> None:
    bench(world.kernel(1.0))

    assert not world.cupti.recording


def test_a_forked_child_does_not_switch_off_its_parent_s_session(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench(world.kernel(1.0))
    world.cupti.calls.clear()
    parent = os.getpid()
    monkeypatch.setattr("collector.instrument.recording.os.getpid", lambda: parent + 1)

    world.at_exit[0]()

    assert world.cupti.calls == []


def test_another_profiler_in_the_process_is_an_error(world: GpuWorld) -> None:
    world.cupti.refuses = lambda function, _: FakeCupti.cuptiError(39) if function == "subscribe" else None

    with pytest.raises(CuptiError, match="another profiler is at work in this process"):
        bench(world.kernel(1.0))
    assert not world.cupti.recording


def test_records_that_do_not_arrive_are_found_by_the_canary(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WorldCupti, "launched", lambda *_: None)

    with pytest.raises(CuptiError, match="CUPTI records cannot be trusted on this machine"):
        bench(world.kernel(1.0))


def test_a_machine_without_a_gpu_is_an_error() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")

    with pytest.raises(MachineError, match="finds no CUDA device"):
        bench_kernel(lambda: None)


def test_another_process_on_the_gpu_is_told(world: GpuWorld) -> None:
    world.nvml.change(processes=[4000, 4711])

    with pytest.warns(UserWarning, match="1 other processes used the GPU"):
        bench(world.kernel(1.0))


@pytest.mark.parametrize("iterations", [0, -3])
def test_no_iterations_are_refused(world: GpuWorld, iterations: int) -> None:
    with pytest.raises(ValueError, match=f"iterations is {iterations}"):
        bench(world.kernel(1.0), iterations=iterations)


def test_a_sample_is_a_record_of_what_the_page_names() -> None:
    assert {f.name for f in fields(Sample)} >= {"device_busy_ms", "latency_ms", "n_kernels", "timing"}
