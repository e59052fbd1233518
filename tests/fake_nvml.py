"""A stand-in for the module ``pynvml``, with the names and error classes of the real one.

What the GPUs are and do lies in a JSON file, so that it outlives a process, as a real lock does.
This file imports nothing of the project: a copy of it is put on the path of worker processes
under the name ``pynvml``.
"""

# ruff: noqa: N802, N818 - NVML's own names; what they do is in NVML's manual

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

STATE_VARIABLE = "FAKE_NVML_STATE"

NVML_SUCCESS = 0
NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NO_PERMISSION = 4
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_LIBRARY_NOT_FOUND = 12
NVML_ERROR_FUNCTION_NOT_FOUND = 13
NVML_ERROR_GPU_IS_LOST = 15
NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18
NVML_CLOCK_SM = 1
NVML_CLOCK_MEM = 2
NVML_TEMPERATURE_GPU = 0
NVML_FI_DEV_POWER_INSTANT = 186


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value

    def __str__(self) -> str:
        return _TEXTS.get(self.value, f"NVML Error with code {self.value}")


class NVMLError_NotSupported(NVMLError):  # noqa: N801
    pass


class NVMLError_NoPermission(NVMLError):  # noqa: N801
    pass


class NVMLError_NotFound(NVMLError):  # noqa: N801
    pass


class NVMLError_LibraryNotFound(NVMLError):  # noqa: N801
    pass


class NVMLError_FunctionNotFound(NVMLError):  # noqa: N801
    pass


class NVMLError_GpuIsLost(NVMLError):  # noqa: N801
    pass


class NVMLError_LibRmVersionMismatch(NVMLError):  # noqa: N801
    pass


_CLASSES: dict[int, type[NVMLError]] = {
    NVML_ERROR_NOT_SUPPORTED: NVMLError_NotSupported,
    NVML_ERROR_NO_PERMISSION: NVMLError_NoPermission,
    NVML_ERROR_NOT_FOUND: NVMLError_NotFound,
    NVML_ERROR_LIBRARY_NOT_FOUND: NVMLError_LibraryNotFound,
    NVML_ERROR_FUNCTION_NOT_FOUND: NVMLError_FunctionNotFound,
    NVML_ERROR_GPU_IS_LOST: NVMLError_GpuIsLost,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH: NVMLError_LibRmVersionMismatch,
}
_TEXTS = {
    NVML_ERROR_NOT_SUPPORTED: "Not Supported",
    NVML_ERROR_NO_PERMISSION: "Insufficient Permissions",
    NVML_ERROR_NOT_FOUND: "Not Found",
    NVML_ERROR_LIBRARY_NOT_FOUND: "NVML Shared Library Not Found",
    NVML_ERROR_FUNCTION_NOT_FOUND: "Function Not Found",
    NVML_ERROR_GPU_IS_LOST: "GPU is lost",
    NVML_ERROR_LIB_RM_VERSION_MISMATCH: "Driver/library version mismatch",
}


def _state() -> Any:
    return json.loads(Path(os.environ[STATE_VARIABLE]).read_text(encoding="utf-8"))


def _save(state: Any) -> None:
    path = Path(os.environ[STATE_VARIABLE])
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(state), encoding="utf-8")
    draft.replace(path)


def _answer(function: str, errors: dict[str, int]) -> None:
    """Fail as the state wants it."""
    code = errors.get(function, NVML_SUCCESS)
    if code != NVML_SUCCESS:
        raise _CLASSES[code](code)


def _read(function: str, handle: int, key: str) -> Any:
    gpu = _state()["gpus"][handle]
    _answer(function, gpu["errors"])
    return gpu[key]


def _change(function: str, handle: int, changes: dict[str, Any]) -> None:
    state = _state()
    gpu = state["gpus"][handle]
    _answer(function, gpu["errors"])
    gpu["written"].append(function)
    if function not in gpu["ignores"]:
        gpu.update(changes)
    _save(state)


def _working() -> bool:
    """Whether a load runs: one that the test pretends, or what the fake torch has queued."""
    return bool(_state()["working"] or getattr(sys.modules.get("torch"), "queued", 0))


def nvmlInit() -> None:
    _answer("nvmlInit", _state()["errors"])


def nvmlSystemGetDriverVersion() -> str:
    _answer("nvmlSystemGetDriverVersion", _state()["errors"])
    return "580.159.04"


def nvmlSystemGetCudaDriverVersion_v2() -> int:
    _answer("nvmlSystemGetCudaDriverVersion_v2", _state()["errors"])
    return 13020


def nvmlDeviceGetCount() -> int:
    return len(_state()["gpus"])


def nvmlDeviceGetHandleByIndex(index: int) -> int:
    _read("nvmlDeviceGetHandleByIndex", index, "uuid")
    return index


def nvmlDeviceGetHandleByUUID(uuid: str) -> int:
    for index, gpu in enumerate(_state()["gpus"]):
        if gpu["uuid"] == uuid:
            _answer("nvmlDeviceGetHandleByUUID", gpu["errors"])
            return index
    raise NVMLError_NotFound(NVML_ERROR_NOT_FOUND)


def nvmlDeviceGetUUID(handle: int) -> str:
    return str(_read("nvmlDeviceGetUUID", handle, "uuid"))


def nvmlDeviceGetName(handle: int) -> str:
    return str(_read("nvmlDeviceGetName", handle, "name"))


def nvmlDeviceSetGpuLockedClocks(handle: int, minGpuClockMHz: int, maxGpuClockMHz: int) -> None:  # noqa: N803
    if minGpuClockMHz != maxGpuClockMHz:
        raise AssertionError("a clock is locked at one frequency")
    _change("nvmlDeviceSetGpuLockedClocks", handle, {"locked_mhz": maxGpuClockMHz})


def nvmlDeviceResetGpuLockedClocks(handle: int) -> None:
    _change("nvmlDeviceResetGpuLockedClocks", handle, {"locked_mhz": None})


def nvmlDeviceGetPowerManagementLimit(handle: int) -> int:
    return int(_read("nvmlDeviceGetPowerManagementLimit", handle, "power_limit_mw"))


def nvmlDeviceSetPowerManagementLimit(handle: int, limit: int) -> None:
    _change("nvmlDeviceSetPowerManagementLimit", handle, {"power_limit_mw": limit})


def nvmlDeviceGetEnforcedPowerLimit(handle: int) -> int:
    return int(_read("nvmlDeviceGetEnforcedPowerLimit", handle, "power_limit_mw"))


def nvmlDeviceGetPowerManagementDefaultLimit(handle: int) -> int:
    _read("nvmlDeviceGetPowerManagementDefaultLimit", handle, "uuid")
    return 700_000


def nvmlDeviceGetClockInfo(handle: int, type: int) -> int:  # noqa: A002
    gpu = _state()["gpus"][handle]
    _answer("nvmlDeviceGetClockInfo", gpu["errors"])
    if type == NVML_CLOCK_MEM:
        return 3201
    if not _working():
        return 345
    return int(gpu["locked_mhz"] or gpu["free_mhz"])


def nvmlDeviceGetMaxClockInfo(handle: int, type: int) -> int:  # noqa: A002
    _read("nvmlDeviceGetMaxClockInfo", handle, "uuid")
    return 3201 if type == NVML_CLOCK_MEM else 1980


def nvmlDeviceGetApplicationsClock(handle: int, type: int) -> int:  # noqa: A002
    del type
    _read("nvmlDeviceGetApplicationsClock", handle, "uuid")
    return 1980


def nvmlDeviceGetCurrentClocksEventReasons(handle: int) -> int:
    return int(_read("nvmlDeviceGetCurrentClocksEventReasons", handle, "reasons"))


def nvmlDeviceGetCurrentClocksThrottleReasons(handle: int) -> int:
    return int(_read("nvmlDeviceGetCurrentClocksThrottleReasons", handle, "reasons"))


def nvmlDeviceGetFieldValues(handle: int, fieldIds: list[int]) -> list[SimpleNamespace]:  # noqa: N803
    fields = _read("nvmlDeviceGetFieldValues", handle, "fields")
    return [
        SimpleNamespace(
            nvmlReturn=NVML_SUCCESS if str(number) in fields else NVML_ERROR_NOT_SUPPORTED,
            value=SimpleNamespace(ullVal=fields.get(str(number), 0), uiVal=fields.get(str(number), 0)),
        )
        for number in fieldIds
    ]


def nvmlDeviceGetComputeRunningProcesses(handle: int) -> list[int]:
    return list(_read("nvmlDeviceGetComputeRunningProcesses", handle, "processes"))


def nvmlDeviceGetPersistenceMode(handle: int) -> int:
    return int(_read("nvmlDeviceGetPersistenceMode", handle, "persistence"))


def nvmlDeviceGetTemperature(handle: int, sensor: int) -> int:
    del sensor
    _read("nvmlDeviceGetTemperature", handle, "uuid")
    return 41


def nvmlDeviceGetVbiosVersion(handle: int) -> str:
    _read("nvmlDeviceGetVbiosVersion", handle, "uuid")
    return "96.00.99.00.01"


def nvmlDeviceGetCudaComputeCapability(device: int) -> tuple[int, int]:
    _read("nvmlDeviceGetCudaComputeCapability", device, "uuid")
    return 9, 0


def nvmlDeviceGetPerformanceState(handle: int) -> int:
    _read("nvmlDeviceGetPerformanceState", handle, "uuid")
    return 0


def nvmlDeviceGetComputeMode(handle: int) -> int:
    _read("nvmlDeviceGetComputeMode", handle, "uuid")
    return 0


def nvmlDeviceGetEccMode(handle: int) -> list[int]:
    _read("nvmlDeviceGetEccMode", handle, "uuid")
    return [1, 1]


def nvmlDeviceGetMigMode(device: int) -> list[int]:
    mode = int(_read("nvmlDeviceGetMigMode", device, "mig"))
    return [mode, mode]


def nvmlDeviceGetVirtualizationMode(handle: int) -> int:
    _read("nvmlDeviceGetVirtualizationMode", handle, "uuid")
    return 0


def nvmlDeviceGetCurrPcieLinkGeneration(handle: int) -> int:
    _read("nvmlDeviceGetCurrPcieLinkGeneration", handle, "uuid")
    return 5


def nvmlDeviceGetCurrPcieLinkWidth(handle: int) -> int:
    _read("nvmlDeviceGetCurrPcieLinkWidth", handle, "uuid")
    return 16


def nvmlDeviceGetMemoryBusWidth(device: int) -> int:
    _read("nvmlDeviceGetMemoryBusWidth", device, "uuid")
    return 6144


def nvmlDeviceGetMemoryInfo(handle: int, version: object = None) -> SimpleNamespace:
    del version
    _read("nvmlDeviceGetMemoryInfo", handle, "uuid")
    return SimpleNamespace(total=150_754_820_096)
