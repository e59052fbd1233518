"""What NVML says about a GPU, addressed by UUID so that no environment variable misleads.

A value that cannot be read becomes a reading with the error, never a zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from collector.errors import GpuNotFoundError, TelemetryError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.protocol import JsonReading

# Cumulative times in which a limit held the clock down (nvml.h, field value ids).
THROTTLE_COUNTERS = {
    "power_cap": 74,
    "sync_boost": 76,
    "thermal": 269,
    "hw_thermal": 270,
    "hw_power_brake": 271,
}


_HIDES_ALL = ("", "-1")  # values of CUDA_VISIBLE_DEVICES by which a user hides every GPU
_DEVICE_FILES = Path("/dev")


class Telemetry(Protocol):
    """What a window needs to know about its GPU."""

    def clock_and_reasons(self) -> tuple[int | None, int | None]:
        """SM clock in MHz and the mask of reasons that limit it, now; None where unreadable."""

    def throttle_counters(self) -> Mapping[str, int | None]:
        """Cumulative throttle times by name, for differences only."""

    def window_readings(self) -> Mapping[str, JsonReading]:
        """Temperature, power and memory clock, now."""

    def process_count(self) -> int | None:
        """Processes that compute on the GPU, this one included; None where it cannot be told."""


class NoTelemetry:
    """Stands where there is no GPU: it knows nothing, and says so."""

    def clock_and_reasons(self) -> tuple[int | None, int | None]:
        """Nothing is known about clocks."""
        return None, None

    def throttle_counters(self) -> Mapping[str, int | None]:
        """There is no counter."""
        return {}

    def window_readings(self) -> Mapping[str, JsonReading]:
        """There is no reading."""
        return {}

    def process_count(self) -> int | None:
        """Nothing is known about other processes."""
        return None


def reading_of(read: Callable[[], Any]) -> JsonReading:
    """Call ``read`` and give its value, or the error in its place."""
    try:
        value = read()
    except Exception as error:  # noqa: BLE001 - whatever stood in the way is the reading
        return {"error": f"{type(error).__name__}: {error}"}
    if value is None:
        return {"error": "no value"}
    return {"value": value.decode() if isinstance(value, bytes) else value}


@dataclass(frozen=True)
class VisibleGpu:
    """A GPU as NVML lists it."""

    index: int
    uuid: str
    name: str


def open_nvml() -> Any:
    """The NVML binding, initialised.

    Raises:
        TelemetryError: it is not installed, or there is no driver.
    """
    try:
        import pynvml
    except ImportError as error:
        raise TelemetryError(
            f"the NVML binding cannot be imported ({error}): install nvidia-ml-py beside the code under test"
        ) from error
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise TelemetryError(f"NVML does not answer: {error}") from error
    return pynvml


def find_gpu(wanted: str | None, visible: str | None) -> VisibleGpu | None:
    """Find the GPU to measure.

    Args:
        wanted: an index among the visible GPUs, or a UUID; None for the first visible one.
        visible: ``CUDA_VISIBLE_DEVICES`` as the user set it, or None. A GPU asked for by UUID
            need not be among them.

    Returns:
        The GPU, or None where none was asked for and the machine has no NVIDIA driver, no GPU,
        or hides them all on purpose (``CUDA_VISIBLE_DEVICES`` empty or -1).

    Raises:
        GpuNotFoundError: the GPU asked for is not there, cannot be reached, or is cut into
            instances.
    """
    if wanted is None and visible is not None and visible.strip() in _HIDES_ALL:
        return None
    try:
        nvml = open_nvml()
    except TelemetryError as error:
        present = sorted(path.name for path in _DEVICE_FILES.glob("nvidia[0-9]*"))
        if wanted is None and not present:
            return None
        what = f"GPU {wanted}" if wanted is not None else f"the GPU that /dev/{present[0]} belongs to"
        raise GpuNotFoundError(
            f"{what} cannot be looked up: {error}. To measure without a GPU set CUDA_VISIBLE_DEVICES=-1"
        ) from error
    listed, silent = _list_gpus(nvml)
    if wanted is None and not listed and not silent:
        return None
    candidates = _visible_only(listed, visible)
    if wanted is not None and not wanted.isdecimal():
        matches = [gpu for gpu in listed if gpu.uuid.lower().startswith(wanted.lower())]
    elif silent:
        raise GpuNotFoundError(
            f"{'; '.join(silent)}: where one GPU is lost an index may mean another one. Reset it, or give "
            "--gpu the UUID of a healthy one"
        )
    else:
        matches = candidates[int(wanted or 0) :][:1]
    if len(matches) == 1:
        _refuse_instances(nvml, matches[0])
        return matches[0]
    known = ", ".join(f"{position}: {gpu.uuid}" for position, gpu in enumerate(candidates)) or "none"
    if visible is not None:
        known += f" (CUDA_VISIBLE_DEVICES is {visible!r})"
    what = f"{wanted} fits {len(matches)} GPUs" if matches else f"there is no GPU {wanted or 0}"
    raise GpuNotFoundError(f"{what}; visible are {known}: give --gpu the index or UUID of a whole GPU")


def _refuse_instances(nvml: Any, gpu: VisibleGpu) -> None:
    """A GPU that is cut into MIG instances shares clock and power between them, and with that its times."""
    try:
        cut = bool(nvml.nvmlDeviceGetMigMode(nvml.nvmlDeviceGetHandleByUUID(gpu.uuid))[0])
    except nvml.NVMLError:
        return  # a GPU that knows no instances
    if cut:
        raise GpuNotFoundError(
            f"GPU {gpu.uuid} is cut into MIG instances, which share clock and power, so that one would "
            f"measure what the others do: give --gpu a whole GPU, or have an administrator run "
            f"`nvidia-smi -i {gpu.uuid} -mig 0`"
        )


def _list_gpus(nvml: Any) -> tuple[list[VisibleGpu], list[str]]:
    """The GPUs that answer, and what stood in the way of the others."""
    listed: list[VisibleGpu] = []
    silent = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            listed.append(VisibleGpu(index, nvml.nvmlDeviceGetUUID(handle), nvml.nvmlDeviceGetName(handle)))
        except nvml.NVMLError as error:
            silent.append(f"GPU {index} does not answer ({error})")
    return listed, silent


def _visible_only(listed: list[VisibleGpu], visible: str | None) -> list[VisibleGpu]:
    """The GPUs that CUDA_VISIBLE_DEVICES lets through, in its order; it stops at the first bad entry."""
    if visible is None:
        return listed
    chosen: list[VisibleGpu] = []
    for entry in (part.strip() for part in visible.split(",")):
        if entry.isdecimal():
            match = [gpu for gpu in listed if gpu.index == int(entry)]
        else:
            match = [gpu for gpu in listed if entry and gpu.uuid.startswith(entry)]
        if len(match) != 1:
            break
        chosen += match
    return chosen


class NvmlTelemetry:
    """NVML readings of one GPU.

    Raises:
        TelemetryError: NVML is not there, or does not know the GPU.
    """

    def __init__(self, uuid: str) -> None:
        self._nvml = open_nvml()
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except self._nvml.NVMLError as error:
            raise TelemetryError(f"NVML cannot reach GPU {uuid}: {error}") from error
        self._reasons = self._reasons_function()

    def _reasons_function(self) -> Callable[[Any], int]:
        """The reasons under their present name, or under the one that older bindings and drivers know."""
        nvml = self._nvml
        new = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
        old: Callable[[Any], int] = nvml.nvmlDeviceGetCurrentClocksThrottleReasons
        if new is None:
            return old
        try:
            new(self._handle)
        except nvml.NVMLError_FunctionNotFound:
            return old
        except nvml.NVMLError:
            pass  # each reading says so for itself
        return cast("Callable[[Any], int]", new)

    def clock_and_reasons(self) -> tuple[int | None, int | None]:
        """SM clock in MHz and the reason mask, now."""
        nvml = self._nvml
        try:
            clock = int(nvml.nvmlDeviceGetClockInfo(self._handle, nvml.NVML_CLOCK_SM))
        except nvml.NVMLError:
            clock = None
        try:
            reasons = int(self._reasons(self._handle))
        except nvml.NVMLError:
            reasons = None
        return clock, reasons

    def throttle_counters(self) -> Mapping[str, int | None]:
        """Cumulative throttle times by name; None where this GPU does not count one."""
        ids = list(THROTTLE_COUNTERS.values())
        try:
            fields = self._nvml.nvmlDeviceGetFieldValues(self._handle, ids)
        except self._nvml.NVMLError:
            return dict.fromkeys(THROTTLE_COUNTERS)
        return {
            name: int(field.value.ullVal) if field.nvmlReturn == self._nvml.NVML_SUCCESS else None
            for name, field in zip(THROTTLE_COUNTERS, fields, strict=True)
        }

    def window_readings(self) -> Mapping[str, JsonReading]:
        """Temperature, power and memory clock, now."""
        nvml, handle = self._nvml, self._handle
        return {
            "temperature_c": reading_of(
                lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)
            ),
            "power_w": reading_of(lambda: self._field(nvml.NVML_FI_DEV_POWER_INSTANT) / 1000),
            "memory_clock_mhz": reading_of(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        }

    def process_count(self) -> int | None:
        """Processes that compute on the GPU, this one included."""
        try:
            return len(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        except self._nvml.NVMLError:
            return None

    def _field(self, field_id: int) -> int:
        (field,) = self._nvml.nvmlDeviceGetFieldValues(self._handle, [field_id])
        if field.nvmlReturn != self._nvml.NVML_SUCCESS:
            raise self._nvml.NVMLError(field.nvmlReturn)
        return int(field.value.uiVal)

    def context(self) -> dict[str, JsonReading]:
        """Everything about the card that a later reader may want to know, by dotted name."""
        n, h = self._nvml, self._handle
        reads: dict[str, Callable[[], Any]] = {
            "gpu.uuid": lambda: n.nvmlDeviceGetUUID(h),
            "gpu.name": lambda: n.nvmlDeviceGetName(h),
            "gpu.vbios": lambda: n.nvmlDeviceGetVbiosVersion(h),
            "gpu.driver": n.nvmlSystemGetDriverVersion,
            "gpu.cuda_driver": lambda: _cuda_version(n.nvmlSystemGetCudaDriverVersion_v2()),
            "gpu.compute_capability": lambda: "{}.{}".format(*n.nvmlDeviceGetCudaComputeCapability(h)),
            "gpu.sm_clock_mhz": lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
            "gpu.sm_clock_max_mhz": lambda: n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM),
            "gpu.sm_clock_application_mhz": lambda: n.nvmlDeviceGetApplicationsClock(h, n.NVML_CLOCK_SM),
            "gpu.memory_clock_mhz": lambda: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_MEM),
            "gpu.memory_clock_max_mhz": lambda: n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_MEM),
            "gpu.power_limit_w": lambda: n.nvmlDeviceGetEnforcedPowerLimit(h) / 1000,
            "gpu.power_limit_default_w": lambda: n.nvmlDeviceGetPowerManagementDefaultLimit(h) / 1000,
            "gpu.power_w": lambda: self._field(n.NVML_FI_DEV_POWER_INSTANT) / 1000,
            "gpu.temperature_c": lambda: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
            "gpu.performance_state": lambda: f"P{n.nvmlDeviceGetPerformanceState(h)}",
            "gpu.persistence_mode": lambda: bool(n.nvmlDeviceGetPersistenceMode(h)),
            "gpu.compute_mode": lambda: n.nvmlDeviceGetComputeMode(h),
            "gpu.ecc": lambda: bool(n.nvmlDeviceGetEccMode(h)[0]),
            "gpu.mig": lambda: bool(n.nvmlDeviceGetMigMode(h)[0]),
            "gpu.virtualization_mode": lambda: n.nvmlDeviceGetVirtualizationMode(h),
            "gpu.pcie_generation": lambda: n.nvmlDeviceGetCurrPcieLinkGeneration(h),
            "gpu.pcie_width": lambda: n.nvmlDeviceGetCurrPcieLinkWidth(h),
            "gpu.memory_bus_bits": lambda: n.nvmlDeviceGetMemoryBusWidth(h),
            "gpu.memory_total_bytes": lambda: n.nvmlDeviceGetMemoryInfo(h).total,
            "gpu.processes": lambda: len(n.nvmlDeviceGetComputeRunningProcesses(h)),
        }
        readings = {name: reading_of(read) for name, read in reads.items()}
        for name, value in self.throttle_counters().items():
            readings[f"gpu.throttle.{name}"] = (
                {"error": "not counted by this GPU or driver"} if value is None else {"value": value}
            )
        return readings


def _cuda_version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"
