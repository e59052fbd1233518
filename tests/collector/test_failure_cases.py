"""Ways in which GPU timers have gone wrong elsewhere, met here; docs/failure-cases.md lists them all."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import fake_cupti
import fake_nvml
import pytest
from builders import a_measurement, a_window
from gpu_world import a_gpu_world
from nvml_machine import FIRST_UUID, a_gpu, a_machine
from real_workers import a_session, benchmarks, run_passes

from collector.cupti_session import CuptiSession
from collector.device import CudaDevice
from collector.errors import CuptiError, GpuNotFoundError, MachineError, TimerFloorError
from collector.pacing import PAUSE_FIRST_MS, SETTLED_AFTER, Pacer
from collector.probe import library_in
from collector.remarks import peak_bandwidth_tbs, remarks, with_roofline
from collector.run import environment_key
from collector.suspend import slept_s, why_invalid
from collector.telemetry import find_gpu
from collector.tiers import clock_band, grade
from collector.timers import EVENT_REPS_MAX, CuptiTimer, EventTimer, inner_repetitions
from store.records import CacheState, ClockRegime, Quantity, Reading, Tier, Timer

if TYPE_CHECKING:
    from pathlib import Path

UNKNOWN_REASON = 1 << 14


# CUPTI in the hands of others


def a_started_session() -> CuptiSession:
    session = CuptiSession()
    session.start()
    return session


def test_a_profiler_that_holds_cuptis_callbacks_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = fake_cupti.install(monkeypatch)
    cupti.refuses = lambda function, _: cupti.cuptiError(39) if function == "subscribe" else None

    with pytest.raises(CuptiError, match=r"another profiler is at work.*nsys, ncu or cuda-gdb"):
        a_started_session().refuse_other_subscriber()


def test_where_nobody_else_listens_nothing_stays_subscribed(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = fake_cupti.install(monkeypatch)

    a_started_session().refuse_other_subscriber()

    assert cupti.names()[-2:] == ["subscribe", "unsubscribe"]


def test_a_cupti_that_cannot_tell_about_others_is_left_to_the_canary(monkeypatch: pytest.MonkeyPatch) -> None:
    cupti = fake_cupti.install(monkeypatch)
    refusal = fake_cupti.NotSupportedError("not in this version")
    cupti.refuses = lambda function, _: refusal if function == "subscribe" else None

    a_started_session().refuse_other_subscriber()


def test_torchs_profiler_and_cupti_are_never_on_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu_world(tmp_path, monkeypatch)
    session = a_started_session()
    timer = CuptiTimer(session, CudaDevice(), count_copies=False, any_thread=False, cold=True)
    running = SimpleNamespace(_is_profiler_enabled=True)
    monkeypatch.setitem(sys.modules, "torch.autograd.profiler", running)

    with pytest.raises(CuptiError, match=r"torch.profiler records in this process"):
        timer.begin(10, lambda: None)


def test_the_mark_of_a_running_profiler_is_torchs_own() -> None:
    import torch

    mark = "_is_profiler_enabled"
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert getattr(torch.autograd.profiler, mark) is True
    assert getattr(torch.autograd.profiler, mark) is False


def test_the_cupti_that_was_loaded_is_found_among_the_files_of_the_process() -> None:
    maps = (
        "7f00-7f01 r-xp 00000000 00:2a 77 /usr/lib/libc.so.6\n"
        "7f02-7f03 r-xp 00000000 00:2a 78 /opt/my env/nvidia/cu13/lib/libcupti.so.13\n"
    )

    assert library_in(maps) == "/opt/my env/nvidia/cu13/lib/libcupti.so.13"
    assert library_in("") is None


# The device


def test_the_cache_is_cleared_on_the_measured_device_and_persisting_lines_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_gpu_world(tmp_path, monkeypatch)

    device = CudaDevice(1)
    device.clear_cache()

    assert world.current_device == 1
    assert f"allocate {256 << 20} int8 on cuda" in world.log
    assert world.log[-2:] == ["reset persisting lines", "flush"]


def test_a_device_settles_for_a_fifth_of_a_millisecond(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu_world(tmp_path, monkeypatch)
    device = CudaDevice()

    begin = time.perf_counter()
    device.settle()

    assert time.perf_counter() - begin >= 0.2e-3


def test_a_cache_larger_than_the_usual_flush_is_cleared_twice_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = a_gpu_world(tmp_path, monkeypatch)
    huge = SimpleNamespace(L2_cache_size=200 << 20)
    monkeypatch.setattr(sys.modules["torch"].cuda, "get_device_properties", lambda _: huge)

    CudaDevice()

    assert f"allocate {400 << 20} int8 on cuda" in world.log


@pytest.mark.parametrize("elapsed_ms", [-1.78, 0.0, float("nan")])
def test_a_time_that_an_event_pair_cannot_have_read_is_an_error_and_never_clamped(
    elapsed_ms: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_gpu_world(tmp_path, monkeypatch)
    event = SimpleNamespace(record=lambda: None, elapsed_time=lambda _: elapsed_ms)
    monkeypatch.setattr(sys.modules["torch"].cuda, "Event", lambda enable_timing: event)  # noqa: ARG005
    timer = EventTimer(CudaDevice(), cold=True)
    timer.begin(1, lambda: None)
    timer.time(0, lambda: None)

    with pytest.raises(TimerFloorError, match="iteration 0"):
        timer.finish()


@pytest.mark.parametrize("probe_ms", [0.0, -0.001, float("nan")])
def test_a_probe_that_reads_no_time_asks_for_the_most_repetitions(probe_ms: float) -> None:
    assert inner_repetitions(probe_ms, 10e-3) == EVENT_REPS_MAX


# Finding the GPU


def test_a_gpu_that_is_cut_into_instances_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine(tmp_path, a_gpu(FIRST_UUID, mig=1)).use_here(monkeypatch)

    with pytest.raises(GpuNotFoundError, match=f"nvidia-smi -i {FIRST_UUID} -mig 0"):
        find_gpu(None, None)


def test_an_instance_in_the_visible_devices_is_no_whole_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_machine(tmp_path).use_here(monkeypatch)

    with pytest.raises(GpuNotFoundError, match=r"MIG-5f3c.*give --gpu the index or UUID of a whole GPU"):
        find_gpu(None, "MIG-5f3c0b9e-0000-5000-8000-000000000001")


def test_a_gpu_that_nvml_cannot_reach_is_never_replaced_by_the_host_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = a_machine(tmp_path)
    machine.change_machine(errors={"nvmlInit": fake_nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH})
    machine.use_here(monkeypatch)
    (tmp_path / "nvidia0").touch()
    monkeypatch.setattr("collector.telemetry._DEVICE_FILES", tmp_path)

    with pytest.raises(GpuNotFoundError, match=r"/dev/nvidia0.*Driver/library version mismatch"):
        find_gpu(None, None)
    assert find_gpu(None, "-1") is None


# A machine that fails in the middle of a run


def test_a_gpu_that_is_lost_in_the_middle_of_a_run_costs_what_is_left_and_not_what_is_done(
    bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []

    def lost(*_: Any) -> None:
        raise MachineError(f"NVML cannot reach GPU {FIRST_UUID}: GPU is lost")

    with a_session(bare_python, tmp_path, benchmarks("a", "b")) as session:
        run_passes(session, passes=1)
        monkeypatch.setattr(session, "_run_process", lost)
        for pass_index in (1, 2):
            session.run_pass(pass_index, 7, lambda case: told.append(case.benchmark))

    assert [len(windows) for windows in session.collected.windows.values()] == [1, 1]
    assert sorted(told) == ["a", "a", "b", "b"]  # the progress comes to its end
    assert len(session.collected.failures) == 2
    for failure in session.collected.failures:
        assert (failure["stage"], failure["kind"], failure["pass_index"]) == ("worker", "MachineError", 1)
        assert "GPU is lost" in failure["message"]


def test_a_machine_that_fails_before_the_first_window_ends_the_run(
    bare_python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any) -> None:
        raise MachineError("GPU is lost")

    with a_session(bare_python, tmp_path, benchmarks("a")) as session:
        monkeypatch.setattr(session, "_run_process", lost)
        with pytest.raises(MachineError, match="GPU is lost"):
            run_passes(session)


def test_a_machine_that_was_suspended_since_then_is_told_with_the_time() -> None:
    now = slept_s()

    assert why_invalid(now) is None
    assert "suspended for 42.0 s" in (why_invalid(now - 42) or "")


# Reasons and tiers


def test_a_reason_that_no_manual_names_lengthens_the_pause() -> None:
    pacer = Pacer(hold=True)
    for _ in range(SETTLED_AFTER):
        pacer.observe(1980, 0)

    pacer.observe(1980, UNKNOWN_REASON)

    assert pacer.pause_ms == PAUSE_FIRST_MS


def test_a_sample_under_a_reason_that_no_manual_names_is_left_out() -> None:
    band = clock_band([(1980, 0)] * 5 + [(1980, UNKNOWN_REASON)])

    assert "unknown reason 0x4000" in (band.exclusion(1980, UNKNOWN_REASON) or "")


def test_a_call_whose_number_of_kernels_varies_is_not_tier_a() -> None:
    windows = [a_window(index) for index in range(7)] + [a_window(7, n_kernels=(1,) * 29 + (2,))]

    graded = grade(windows, timer=Timer.CUPTI, regime=ClockRegime.HELD)

    assert graded.tier is Tier.B
    assert graded.evidence == ("the number of kernels differs between iterations of pass 7",)


# What is said beside a number


def test_a_call_in_which_the_device_mostly_waits_is_pointed_out() -> None:
    waits = a_window(samples_ms=(0.1,) * 10, latency_ms=(0.4,) * 10)
    works = a_window(samples_ms=(0.1,) * 10, latency_ms=(0.11,) * 10)

    (remark,) = remarks([waits], Quantity.DEVICE_BUSY)

    assert "the device waits 75% of the time" in remark
    assert remarks([works], Quantity.DEVICE_BUSY) == ()


H200_MEMORY = {"gpu.memory_clock_max_mhz": Reading(value=3201), "gpu.memory_bus_bits": Reading(value=6144)}


def test_the_peak_of_the_memory_is_two_transfers_a_clock() -> None:
    assert peak_bandwidth_tbs(H200_MEMORY) == pytest.approx(4.917, rel=1e-3)


def test_a_cold_call_that_moves_more_than_the_memory_can_is_doubted() -> None:
    impossible = a_measurement(median_ms=0.25, bytes_moved=2e9)  # 8 TB/s

    assert (
        " TB/s is more than the memory's 4.92 TB/s"
        in with_roofline(impossible, H200_MEMORY).tier_evidence[-1]
    )


@pytest.mark.parametrize(
    "changes",
    [{"bytes_moved": 1e9}, {"bytes_moved": None}, {"bytes_moved": 2e9, "cache_state": CacheState.WARM}],
    ids=["possible", "not said", "from the cache"],
)  # fmt: skip
def test_a_call_that_can_be_is_not_doubted(changes: dict[str, Any]) -> None:
    measurement = a_measurement(median_ms=0.25, **changes)

    assert with_roofline(measurement, H200_MEMORY) == measurement


def test_a_memory_that_cannot_be_read_doubts_nothing() -> None:
    impossible = a_measurement(median_ms=0.25, bytes_moved=2e9)

    unread = H200_MEMORY | {"gpu.memory_bus_bits": Reading(error="Not Supported")}
    assert with_roofline(impossible, unread) == impossible


# The environment


def test_error_correction_on_and_off_are_two_series() -> None:
    on, off, unread = (
        environment_key({"gpu.ecc": reading})
        for reading in (Reading(value=True), Reading(value=False), Reading(error="Not Supported"))
    )

    assert (on, off, unread) == ("ecc=on", "ecc=off", "")
