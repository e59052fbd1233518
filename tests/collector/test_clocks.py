"""Clocks locked, verified and given back, on a fake NVML."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import fake_nvml
import pytest
from nvml_machine import FIRST_UUID, SECOND_UUID, NvmlMachine, a_machine

from collector import clocks
from collector.errors import ClocksError, ClocksNotRestoredError

if TYPE_CHECKING:
    from pathlib import Path

SET, RESET = "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks"
SET_POWER = "nvmlDeviceSetPowerManagementLimit"
REFUSED = fake_nvml.NVML_ERROR_NO_PERMISSION


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlMachine:
    """Two GPUs; this process takes the fake for pynvml."""
    made = a_machine(tmp_path)
    made.use_here(monkeypatch)
    return made


class PretendedLoad:
    """A load on the fake GPUs, which can change one of them after so many readings."""

    def __init__(self, machine: NvmlMachine, *, change_after: int | None = None, **changes: Any) -> None:
        self._machine = machine
        self._change_after = change_after
        self._changes = changes
        self.pushed = 0

    def push(self) -> None:
        self.pushed += 1
        if self.pushed == self._change_after:
            self._machine.change(**self._changes)
        self._machine.change_machine(working=True)

    def drain(self) -> None:
        self._machine.change_machine(working=False)


class BrokenLoad:
    """A load that CUDA refuses."""

    def push(self) -> None:
        raise RuntimeError("CUDA error: out of memory")

    def drain(self) -> None:
        """Never reached."""


def test_a_lock_stands_at_the_clock_that_is_read_under_load(machine: NvmlMachine) -> None:
    assert clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine)) == 1500

    assert machine.gpu()["locked_mhz"] == 1500
    assert machine.gpu()["written"] == [SET]


def test_only_the_addressed_gpu_is_touched_whatever_the_visible_devices(
    machine: NvmlMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")

    clocks.lock(SECOND_UUID, 1500, PretendedLoad(machine), power_limit_mw=500_000)
    clocks.unlock(SECOND_UUID, power_limit_mw=700_000)

    assert machine.gpu(FIRST_UUID)["written"] == []
    assert machine.gpu(SECOND_UUID)["written"] == [SET_POWER, SET, RESET, SET_POWER]


def test_unlocking_gives_the_clock_and_exactly_the_earlier_power_limit_back(machine: NvmlMachine) -> None:
    machine.change(power_limit_mw=612_345)
    earlier = clocks.power_limit_mw(FIRST_UUID)
    clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine), power_limit_mw=500_000)
    during = machine.gpu()

    clocks.unlock(FIRST_UUID, power_limit_mw=earlier)

    assert (during["locked_mhz"], during["power_limit_mw"]) == (1500, 500_000)
    assert (machine.gpu()["locked_mhz"], machine.gpu()["power_limit_mw"]) == (None, 612_345)


def test_without_permission_nothing_changes_and_the_remedy_is_named(machine: NvmlMachine) -> None:
    machine.change(errors={SET: REFUSED})

    with pytest.raises(
        ClocksError, match=r"Insufficient Permissions.*root or CAP_SYS_ADMIN.*--clocks verify"
    ):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))

    assert machine.gpu()["written"] == []


def test_a_power_limit_that_was_set_is_restored_when_the_clock_is_refused(machine: NvmlMachine) -> None:
    machine.change(power_limit_mw=650_000, errors={SET: REFUSED})

    with pytest.raises(ClocksError, match="locking the SM clock at 1500 MHz"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine), power_limit_mw=500_000)

    assert machine.gpu()["power_limit_mw"] == 650_000


def test_a_power_limit_without_effect_is_found_by_reading_it_back(machine: NvmlMachine) -> None:
    machine.change(ignores=[SET_POWER])

    with pytest.raises(ClocksError, match=r"is 700 W after it was set to 500 W"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine), power_limit_mw=500_000)

    assert SET not in machine.gpu()["written"]


def test_a_lock_that_the_driver_accepts_and_ignores_is_found_and_undone(machine: NvmlMachine) -> None:
    machine.change(ignores=[SET])

    with pytest.raises(ClocksError, match="under load is 1980 MHz, not 1500 MHz"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))

    assert machine.gpu()["written"] == [SET, RESET]


def test_a_clock_that_falls_under_load_is_no_lock_and_the_cause_is_named(machine: NvmlMachine) -> None:
    late = clocks.SETTLING_READINGS + clocks.READINGS
    load = PretendedLoad(machine, change_after=late, locked_mhz=1400, reasons=0x4)

    with pytest.raises(ClocksError, match=r"1400 to 1500 MHz, not 1500 MHz.*limited by: power limit"):
        clocks.lock(FIRST_UUID, 1500, load)

    assert machine.gpu()["locked_mhz"] is None


@pytest.mark.parametrize(("stands_at", "refused"), [(1470, False), (1469, True), (1530, False), (1531, True)])
def test_a_clock_may_be_thirty_megahertz_away_and_not_more(
    machine: NvmlMachine,
    stands_at: int,
    refused: bool,  # noqa: FBT001 - a case of the table
) -> None:
    machine.change(free_mhz=stands_at)

    if refused:
        with pytest.raises(ClocksError, match=f"{stands_at} MHz, not 1500 MHz"):
            clocks.verify(FIRST_UUID, 1500, PretendedLoad(machine))
    else:
        assert clocks.verify(FIRST_UUID, 1500, PretendedLoad(machine)) == stands_at


def test_what_an_idle_gpu_does_before_the_clock_has_settled_does_not_count(machine: NvmlMachine) -> None:
    machine.change(free_mhz=600)
    load = PretendedLoad(machine, change_after=clocks.SETTLING_READINGS, free_mhz=1500)

    assert clocks.verify(FIRST_UUID, 1500, load) == 1500


def test_a_load_that_fails_undoes_the_lock(machine: NvmlMachine) -> None:
    with pytest.raises(ClocksError, match=r"load that proves the clock .* failed: CUDA error"):
        clocks.lock(FIRST_UUID, 1500, BrokenLoad())

    assert machine.gpu()["written"] == [SET, RESET]


@pytest.mark.parametrize("torch", [None, SimpleNamespace(randn=Mock(side_effect=AssertionError), float16=0)])
def test_a_load_without_a_torch_that_can_use_the_gpu_says_so(
    monkeypatch: pytest.MonkeyPatch, torch: object
) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch)

    with pytest.raises(ClocksError, match="torch cannot use it"):
        clocks.MatmulLoad()


def test_a_clock_that_cannot_be_read_proves_nothing_and_is_undone(machine: NvmlMachine) -> None:
    machine.change(errors={"nvmlDeviceGetClockInfo": fake_nvml.NVML_ERROR_NOT_SUPPORTED})

    with pytest.raises(ClocksError, match="cannot read the SM clock"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))

    assert machine.gpu()["locked_mhz"] is None


def test_a_lock_that_cannot_be_undone_names_every_command_that_does_it(machine: NvmlMachine) -> None:
    late = clocks.SETTLING_READINGS + 1
    load = PretendedLoad(machine, change_after=late, errors={RESET: REFUSED, SET_POWER: REFUSED}, free_mhz=9)
    machine.change(ignores=[SET])

    with pytest.raises(ClocksNotRestoredError, match=rf"nvidia-smi -i {FIRST_UUID} -"):
        clocks.lock(FIRST_UUID, 1500, load, power_limit_mw=500_000)
    with pytest.raises(ClocksNotRestoredError, match=r"Permissions.*-rgc` and `nvidia-smi -i \S+ -pl 700`"):
        clocks.unlock(FIRST_UUID, power_limit_mw=700_000)


def test_the_power_limit_is_restored_even_where_the_clock_cannot_be_unlocked(machine: NvmlMachine) -> None:
    machine.change(power_limit_mw=500_000, errors={RESET: REFUSED})

    with pytest.raises(ClocksNotRestoredError, match=r"-rgc`$"):
        clocks.unlock(FIRST_UUID, power_limit_mw=700_000)

    assert machine.gpu()["power_limit_mw"] == 700_000


def test_a_gpu_whose_driver_would_forget_the_lock_between_processes_is_refused(machine: NvmlMachine) -> None:
    machine.change(persistence=0)

    with pytest.raises(ClocksError, match=r"persistence mode .* is off.*nvidia-smi -i \S+ -pm 1"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))

    assert machine.gpu()["written"] == []


def test_a_platform_without_persistence_mode_can_lock(machine: NvmlMachine) -> None:
    machine.change(errors={"nvmlDeviceGetPersistenceMode": fake_nvml.NVML_ERROR_NOT_SUPPORTED})

    assert clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine)) == 1500


def test_a_gpu_that_cannot_lock_says_what_to_use_instead(machine: NvmlMachine) -> None:
    machine.change(errors={SET: fake_nvml.NVML_ERROR_NOT_SUPPORTED})

    with pytest.raises(ClocksError, match=r"cannot do: use --clocks held"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))


def test_a_gpu_that_is_lost_cannot_be_locked(machine: NvmlMachine) -> None:
    machine.change(errors={SET: fake_nvml.NVML_ERROR_GPU_IS_LOST})

    with pytest.raises(ClocksError, match=r"locking the SM clock at 1500 MHz .* failed: GPU is lost"):
        clocks.lock(FIRST_UUID, 1500, PretendedLoad(machine))


def test_verifying_writes_nothing(machine: NvmlMachine) -> None:
    machine.change(locked_mhz=1500)

    assert clocks.verify(FIRST_UUID, 1500, PretendedLoad(machine)) == 1500
    assert clocks.verify(FIRST_UUID, None, PretendedLoad(machine)) == 1500

    assert machine.gpu()["written"] == []


def test_verifying_without_a_wanted_clock_refuses_one_that_moves(machine: NvmlMachine) -> None:
    load = PretendedLoad(machine, change_after=clocks.SETTLING_READINGS + 15, free_mhz=1700)

    with pytest.raises(ClocksError, match="1700 to 1980 MHz, not 1980 MHz within 30 MHz"):
        clocks.verify(FIRST_UUID, None, load)


def test_verifying_refuses_a_clock_that_something_limits(machine: NvmlMachine) -> None:
    machine.change(locked_mhz=1500, reasons=0x4 | 0x20)

    with pytest.raises(ClocksError, match="1500 MHz, but limited under load by: power limit, thermal limit"):
        clocks.verify(FIRST_UUID, 1500, PretendedLoad(machine))


def test_idle_and_application_clocks_are_no_limits(machine: NvmlMachine) -> None:
    machine.change(locked_mhz=1500, reasons=0x1 | 0x2)

    assert clocks.verify(FIRST_UUID, 1500, PretendedLoad(machine)) == 1500
