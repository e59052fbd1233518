"""What each clock policy does to a GPU, what it restores, and which tier it can give."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING

import fake_nvml
import pytest
from gpu_world import FULL_SPEED_MHZ, GpuWorld, a_gpu_world
from nvml_machine import FIRST_UUID, SECOND_UUID, a_machine

from collector.claims import ClockNote, note_path, read_note, write_note
from collector.errors import ClocksError, ClocksNotRestoredError
from collector.instrument import (
    ClockPolicy,
    HeldClockPolicy,
    LockedClockPolicy,
    MeasurementTier,
    UnlockedClockPolicy,
    VerifyClockPolicy,
    bench_kernel,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SET, RESET = "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
SET_POWER = "nvmlDeviceSetPowerManagementLimit"
ALL = [UnlockedClockPolicy(), HeldClockPolicy(), LockedClockPolicy(1500), VerifyClockPolicy()]


@pytest.fixture(name="world")
def _world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuWorld:
    return a_gpu_world(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("policy", "tier"),
    [
        (UnlockedClockPolicy(), MeasurementTier.B),
        (HeldClockPolicy(), MeasurementTier.A),
        (LockedClockPolicy(1500), MeasurementTier.A),
        (VerifyClockPolicy(), MeasurementTier.A),
        (VerifyClockPolicy(FULL_SPEED_MHZ), MeasurementTier.A),
    ],
    ids=repr,
)
def test_a_steady_clock_is_tier_a_only_where_the_policy_controls_it(
    world: GpuWorld, policy: ClockPolicy, tier: MeasurementTier
) -> None:
    result = measure(world.kernel(100), policy=policy)

    assert result.tier is tier
    assert result.policy == repr(policy)
    assert result.clock_cv_pct == 0


@pytest.mark.parametrize("policy", ALL, ids=repr)
@pytest.mark.parametrize("unread", ["always", "once"])
def test_an_unread_clock_is_never_tier_a(world: GpuWorld, policy: ClockPolicy, unread: str) -> None:
    def call() -> None:
        world.launch(100)
        hidden = unread == "always" or world.count("kernel") == 220
        world.clock_mhz = None if hidden and world.count("kernel") > 0 else FULL_SPEED_MHZ

    result = measure(call, policy=policy)

    assert result.tier is MeasurementTier.B
    assert (result.clock_cv_pct is None) == (unread == "always")


@pytest.mark.parametrize(
    ("moved_mhz", "tier"), [(30, MeasurementTier.A), (31, MeasurementTier.B), (130, MeasurementTier.C)]
)
def test_a_controlled_clock_may_move_by_30_mhz_and_a_cv_above_3_percent_is_tier_c(
    world: GpuWorld, moved_mhz: int, tier: MeasurementTier
) -> None:
    def call() -> None:
        world.launch(100)
        world.clock_mhz = 1980 - moved_mhz * (world.count("kernel") % 2)

    assert measure(call, policy=VerifyClockPolicy(), warmup=10).tier is tier


def test_a_locked_clock_is_locked_under_the_calls_and_free_again_after(world: GpuWorld) -> None:
    seen = set()

    def call() -> None:
        world.launch(100)
        gpu = world.nvml.gpu()
        seen.add((gpu["locked_mhz"], gpu["power_limit_mw"]))

    world.nvml.change(power_limit_mw=612_345)
    measure(call, policy=LockedClockPolicy(1500, power_cap_w=500))

    after = world.nvml.gpu()
    assert seen == {(1500, 500_000)}
    assert (after["locked_mhz"], after["power_limit_mw"]) == (None, 612_345)
    assert after["written"] == [SET_POWER, SET, RESET, SET_POWER]
    assert world.nvml.gpu(SECOND_UUID)["written"] == []
    assert not note_path(FIRST_UUID).exists()


def test_only_the_gpu_that_is_measured_is_locked(world: GpuWorld) -> None:
    measure(world.kernel(100), device=1, policy=LockedClockPolicy(1500))

    assert world.nvml.gpu(SECOND_UUID)["written"] == [SET, RESET]
    assert world.nvml.gpu(FIRST_UUID)["written"] == []


def test_a_locked_clock_is_given_back_when_the_call_raises(world: GpuWorld) -> None:
    def broken() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure(broken, policy=LockedClockPolicy(1500, power_cap_w=500))

    assert world.nvml.gpu()["locked_mhz"] is None
    assert world.nvml.gpu()["power_limit_mw"] == 700_000


@pytest.mark.parametrize("function", [SET, SET_POWER])
def test_a_refused_lock_measures_nothing_changes_nothing_and_leaves_no_note(
    world: GpuWorld, function: str
) -> None:
    world.nvml.change(errors={function: fake_nvml.NVML_ERROR_NO_PERMISSION})

    with pytest.raises(ClocksError, match="root or CAP_SYS_ADMIN"):
        measure(world.kernel(100), policy=LockedClockPolicy(1500, power_cap_w=500))

    assert "kernel" not in world.log
    assert (world.nvml.gpu()["locked_mhz"], world.nvml.gpu()["power_limit_mw"]) == (None, 700_000)
    assert not note_path(FIRST_UUID).exists()


def test_a_lock_that_the_driver_accepts_and_ignores_is_found_under_load(world: GpuWorld) -> None:
    world.nvml.change(ignores=[SET])

    with pytest.raises(ClocksError, match="under load is 1980 MHz, not 1500 MHz"):
        measure(world.kernel(100), policy=LockedClockPolicy(1500))


def test_a_clock_that_cannot_be_given_back_is_an_error_and_the_note_stays(world: GpuWorld) -> None:
    world.nvml.change(errors={RESET: fake_nvml.NVML_ERROR_NO_PERMISSION})

    with pytest.raises(ClocksNotRestoredError, match=f"nvidia-smi -i {FIRST_UUID} -rgc"):
        measure(world.kernel(100), policy=LockedClockPolicy(1500))

    assert read_note(FIRST_UUID) == ClockNote(FIRST_UUID, os.getpid(), 1500, None)


def test_a_lock_that_a_killed_process_left_is_undone_before_the_next_measurement(world: GpuWorld) -> None:
    world.nvml.change(locked_mhz=1200, power_limit_mw=400_000)
    write_note(ClockNote(FIRST_UUID, 4711, 1200, 700_000))
    seen = set()

    def call() -> None:
        world.launch(100)
        seen.add((world.nvml.gpu()["locked_mhz"], world.nvml.gpu()["power_limit_mw"]))

    with pytest.warns(UserWarning, match="process 4711 was killed and left the clock"):
        measure(call)

    assert seen == {(None, 700_000)}
    assert not note_path(FIRST_UUID).exists()


def test_verifying_changes_nothing_and_refuses_another_clock(world: GpuWorld) -> None:
    with pytest.raises(ClocksError, match="not 1500 MHz"):
        measure(world.kernel(100), policy=VerifyClockPolicy(1500))
    measure(world.kernel(100), policy=VerifyClockPolicy())

    assert world.nvml.gpu()["written"] == []


def test_verifying_refuses_a_clock_that_something_limits(world: GpuWorld) -> None:
    world.reasons = 0x4

    with pytest.raises(ClocksError, match="power limit"):
        measure(world.kernel(100), policy=VerifyClockPolicy())


def pulls_the_clock_down(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A call that keeps its clock only with a pause of 2 ms before it, from its twentieth on."""
    pauses = [0.0]

    def hot() -> None:
        world.launch(100)
        holds = pauses.pop() >= 0.002 or world.count("kernel") < 20
        pauses[:] = [0.0]
        world.clock_mhz = FULL_SPEED_MHZ if holds else 1700

    fake_time = SimpleNamespace(sleep=pauses.append, perf_counter=time.perf_counter)
    monkeypatch.setattr("collector.window.time", fake_time)
    return hot


def test_holding_pauses_before_iterations_of_a_call_that_pulls_the_clock_down(
    world: GpuWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot = pulls_the_clock_down(world, monkeypatch)

    free = measure(hot)
    world.log.clear()
    held = measure(hot, policy=HeldClockPolicy())

    assert world.clock_mhz == FULL_SPEED_MHZ
    assert (free.tier, held.tier) == (MeasurementTier.B, MeasurementTier.A)


def test_kernels_are_timed_at_a_held_clock_too(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    hot = pulls_the_clock_down(world, monkeypatch)

    free = bench_kernel(hot, iterations=30)
    world.log.clear()
    held = bench_kernel(hot, iterations=30, policy=HeldClockPolicy())

    assert {sample.sm_clock_mhz for sample in free} == {1700}
    assert {sample.sm_clock_mhz for sample in held} == {FULL_SPEED_MHZ}


@pytest.mark.parametrize("wrong", [{"target_sm_mhz": 0}, {"target_sm_mhz": 1500, "power_cap_w": -1.0}])
def test_a_lock_at_no_clock_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"is (0|-1\.0): give"):
        LockedClockPolicy(**wrong)  # type: ignore[arg-type]


LOCK_AND_WAIT = """
    import sys, time
    from collector.instrument.policies import LockedClockPolicy
    from nvml_machine import FIRST_UUID
    with LockedClockPolicy(1500, power_cap_w=500).applied(FIRST_UUID):
        print("locked", flush=True)
        time.sleep(60)
"""


@pytest.mark.parametrize("ended_by", [signal.SIGTERM, signal.SIGKILL], ids=["SIGTERM", "SIGKILL"])
def test_a_process_that_is_ended_while_the_clock_is_locked(tmp_path: Path, ended_by: signal.Signals) -> None:
    machine = a_machine(tmp_path)
    environment = machine.environment() | {"TMPDIR": str(tmp_path)}
    environment["PYTHONPATH"] += os.pathsep + os.pathsep.join(["tests", "."])
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(LOCK_AND_WAIT)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process, process.stdout:
        assert process.stdout.readline() == "locked\n"
        assert machine.gpu()["locked_mhz"] == 1500
        process.send_signal(ended_by)
        process.wait(timeout=30)

    note = tmp_path / note_path(FIRST_UUID).name
    if ended_by is signal.SIGTERM:
        assert process.returncode == 128 + signal.SIGTERM
        assert (machine.gpu()["locked_mhz"], machine.gpu()["power_limit_mw"]) == (None, 700_000)
        assert not note.exists()
    else:
        assert machine.gpu()["locked_mhz"] == 1500  # nobody could do anything
        assert note.exists()  # but the next measurement will know
