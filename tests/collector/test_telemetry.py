"""Which GPU is measured and what NVML says about it, on a fake NVML."""

from __future__ import annotations

import importlib
import inspect
import sys
from typing import TYPE_CHECKING, Any

import fake_nvml
import pytest
from nvml_machine import FIRST_UUID, SECOND_UUID, NvmlMachine, a_gpu, a_machine

from collector.errors import GpuNotFoundError, TelemetryError
from collector.telemetry import THROTTLE_COUNTERS, NvmlTelemetry, find_gpu

if TYPE_CHECKING:
    from pathlib import Path

BOTH = f"{SECOND_UUID},{FIRST_UUID}"
MIG = "MIG-33333333-aaaa-4bbb-8ccc-000000000003"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlMachine:
    """Two GPUs."""
    made = a_machine(tmp_path)
    made.use_here(monkeypatch)
    return made


def uuid_of(wanted: str | None, visible: str | None) -> str | None:
    found = find_gpu(wanted, visible)
    return None if found is None else found.uuid


@pytest.mark.parametrize(
    ("wanted", "visible", "expected"),
    [
        (None, None, FIRST_UUID),
        ("1", None, SECOND_UUID),
        (SECOND_UUID, None, SECOND_UUID),
        ("gpu-2222", None, SECOND_UUID),
        (None, "1", SECOND_UUID),
        ("0", "1,0", SECOND_UUID),
        ("1", "1,0", FIRST_UUID),
        (None, SECOND_UUID, SECOND_UUID),
        (None, "GPU-2222", SECOND_UUID),
        ("1", BOTH, FIRST_UUID),
        ("0", f"1,{MIG},0", SECOND_UUID),
        (FIRST_UUID, "1", FIRST_UUID),
        (FIRST_UUID, "", FIRST_UUID),
        (None, "", None),
        (None, "-1", None),
    ],
)
@pytest.mark.usefixtures("machine")
def test_the_gpu_is_the_one_that_index_uuid_and_visible_devices_mean(
    wanted: str | None, visible: str | None, expected: str | None
) -> None:
    assert uuid_of(wanted, visible) == expected


@pytest.mark.parametrize(
    ("wanted", "visible", "said"),
    [
        ("2", None, "there is no GPU 2; visible are 0: GPU-1111"),
        ("1", "1", f"there is no GPU 1; visible are 0: {SECOND_UUID} "),
        ("1", f"1,{MIG},0", f"visible are 0: {SECOND_UUID} "),
        (None, MIG, f"visible are none .CUDA_VISIBLE_DEVICES is '{MIG}'.*index or UUID of a whole GPU"),
        ("GPU-9", None, "there is no GPU GPU-9"),
        ("GPU-", None, "GPU- fits 2 GPUs"),
        ("0", "", "there is no GPU 0; visible are none"),
    ],
)
@pytest.mark.usefixtures("machine")
def test_a_gpu_that_is_not_there_is_an_error_that_lists_those_that_are(
    wanted: str | None, visible: str | None, said: str
) -> None:
    with pytest.raises(GpuNotFoundError, match=said):
        find_gpu(wanted, visible)


def test_a_lost_gpu_makes_indices_uncertain_but_not_the_uuid_of_another(machine: NvmlMachine) -> None:
    machine.change(errors={"nvmlDeviceGetHandleByIndex": fake_nvml.NVML_ERROR_GPU_IS_LOST})

    assert uuid_of(SECOND_UUID, None) == SECOND_UUID
    for wanted in (None, "0"):
        with pytest.raises(GpuNotFoundError, match=r"GPU 0 does not answer \(GPU is lost\).*give --gpu"):
            find_gpu(wanted, None)


def test_without_a_driver_there_is_no_gpu_unless_one_was_asked_for(machine: NvmlMachine) -> None:
    machine.change_machine(errors={"nvmlInit": fake_nvml.NVML_ERROR_LIBRARY_NOT_FOUND})

    assert find_gpu(None, None) is None
    with pytest.raises(GpuNotFoundError, match=r"GPU 0 cannot be looked up: .*Library Not Found"):
        find_gpu("0", None)


def test_a_driver_without_gpus_is_a_machine_without_one(machine: NvmlMachine) -> None:
    machine.change_machine(gpus=[])

    assert find_gpu(None, None) is None
    with pytest.raises(GpuNotFoundError, match="visible are none"):
        find_gpu("0", None)


def test_without_the_binding_the_remedy_is_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)

    assert find_gpu(None, None) is None
    with pytest.raises(GpuNotFoundError, match="install nvidia-ml-py"):
        find_gpu("0", None)
    with pytest.raises(TelemetryError, match="install nvidia-ml-py"):
        NvmlTelemetry(FIRST_UUID)


def test_readings_are_those_of_the_gpu_with_this_uuid(machine: NvmlMachine) -> None:
    machine.change(SECOND_UUID, free_mhz=1755, reasons=0x4)
    machine.change_machine(working=True)

    assert NvmlTelemetry(SECOND_UUID).clock_and_reasons() == (1755, 0x4)
    assert NvmlTelemetry(FIRST_UUID).clock_and_reasons() == (1980, 0)


@pytest.mark.usefixtures("machine")
def test_a_gpu_that_nvml_does_not_know_is_an_error_of_ours() -> None:
    with pytest.raises(TelemetryError, match="cannot reach GPU GPU-9: Not Found"):
        NvmlTelemetry("GPU-9")


def test_what_cannot_be_read_carries_the_error_and_never_a_zero(machine: NvmlMachine) -> None:
    names = [name for name in vars(fake_nvml) if name.startswith("nvmlDeviceGet") and "Handle" not in name]
    machine.change(errors=dict.fromkeys(names, fake_nvml.NVML_ERROR_NOT_SUPPORTED))

    telemetry = NvmlTelemetry(FIRST_UUID)
    context = telemetry.context()

    assert {name for name, reading in context.items() if "value" in reading} == {
        "gpu.driver",
        "gpu.cuda_driver",
    }
    assert context["gpu.name"] == {"error": "NVMLError_NotSupported: Not Supported"}
    assert telemetry.clock_and_reasons() == (None, None)
    assert telemetry.process_count() is None
    assert all("error" in reading for reading in telemetry.window_readings().values())


def test_a_healthy_gpu_leaves_nothing_unread(machine: NvmlMachine) -> None:
    del machine
    telemetry = NvmlTelemetry(FIRST_UUID)
    context = telemetry.context()

    assert [name for name, reading in context.items() if "value" not in reading] == []
    assert context["gpu.uuid"] == {"value": FIRST_UUID}
    assert context["gpu.cuda_driver"] == {"value": "13.2"}
    assert context["gpu.power_limit_w"] == {"value": 700.0}
    assert telemetry.window_readings()["power_w"] == {"value": 118.5}
    assert telemetry.process_count() == 1


def test_a_gpu_that_is_lost_while_it_is_watched_becomes_unreadable(machine: NvmlMachine) -> None:
    telemetry = NvmlTelemetry(FIRST_UUID)
    before = telemetry.clock_and_reasons()
    names = [name for name in vars(fake_nvml) if name.startswith("nvmlDeviceGet")]
    machine.change(errors=dict.fromkeys(names, fake_nvml.NVML_ERROR_GPU_IS_LOST))

    assert before == (345, 0)
    assert telemetry.clock_and_reasons() == (None, None)
    assert telemetry.throttle_counters() == dict.fromkeys(THROTTLE_COUNTERS)
    assert telemetry.context()["gpu.sm_clock_mhz"] == {"error": "NVMLError_GpuIsLost: GPU is lost"}


def test_an_old_driver_gives_the_reasons_under_their_old_name(machine: NvmlMachine) -> None:
    machine.change(
        reasons=0x20,
        errors={"nvmlDeviceGetCurrentClocksEventReasons": fake_nvml.NVML_ERROR_FUNCTION_NOT_FOUND},
    )

    assert NvmlTelemetry(FIRST_UUID).clock_and_reasons() == (345, 0x20)


def test_an_old_binding_gives_the_reasons_under_their_old_name(
    machine: NvmlMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.change(reasons=0x20)
    monkeypatch.delattr(fake_nvml, "nvmlDeviceGetCurrentClocksEventReasons")

    assert NvmlTelemetry(FIRST_UUID).clock_and_reasons() == (345, 0x20)


def test_a_counter_that_the_gpu_does_not_keep_is_none_and_the_others_count(machine: NvmlMachine) -> None:
    machine.change(fields={"74": 12_000, "269": 7})

    telemetry = NvmlTelemetry(FIRST_UUID)

    assert telemetry.throttle_counters() == {
        "power_cap": 12_000,
        "sync_boost": None,
        "thermal": 7,
        "hw_thermal": None,
        "hw_power_brake": None,
    }
    assert "error" in telemetry.context()["gpu.throttle.hw_thermal"]
    assert "error" in telemetry.window_readings()["power_w"]


def test_a_machine_of_one_gpu_is_found_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a_machine(tmp_path, a_gpu(SECOND_UUID)).use_here(monkeypatch)

    assert uuid_of(None, None) == SECOND_UUID


def _functions(module: Any) -> dict[str, list[str]]:
    return {
        name: list(inspect.signature(value).parameters)
        for name, value in vars(module).items()
        if name.startswith("nvml") and inspect.isfunction(value)
    }


def test_the_fake_has_the_names_parameters_and_numbers_of_the_real_binding() -> None:
    real = importlib.import_module("pynvml")
    theirs = _functions(real)

    wrong = [
        name
        for name, parameters in _functions(fake_nvml).items()
        if name not in theirs or len(theirs[name]) < len(parameters)
    ]
    constants = [name for name in vars(fake_nvml) if name.startswith("NVML_")]

    assert wrong == []
    assert {name: getattr(fake_nvml, name) for name in constants} == {
        name: getattr(real, name) for name in constants
    }
    assert all(
        issubclass(getattr(real, name), real.NVMLError)
        for name in vars(fake_nvml)
        if name.startswith("NVMLError_")
    )
