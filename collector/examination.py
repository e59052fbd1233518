"""What a machine says about itself when it is asked whether it can measure.

Runs in a worker process of its own, with the interpreter of the code under test. Readings are
handed on as soon as they are known, so that a crash further on does not lose them. Nothing is
changed: no clock, no limit, no mode is ever written.
"""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.errors import MachineError
from collector.probe import probe_gpu, software_context
from collector.telemetry import NvmlTelemetry, find_gpu, open_nvml, reading_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from collector.protocol import Job, JsonReading
    from collector.telemetry import VisibleGpu

_CAP_SYS_ADMIN = 21  # capability.h
# Tools that look into a process from outside leave these in its environment.
_INJECTIONS = ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID")


def examine(job: Job) -> Iterator[Mapping[str, JsonReading]]:
    """Readings, one group after the other, the riskiest last.

    Args:
        job: of which the timer, the GPU and ``CUDA_VISIBLE_DEVICES`` count.
    """
    yield _host(job["visible_devices"])
    yield {"nvml.works": _nvml_works()}
    gpu: VisibleGpu | None = None
    try:
        gpu = find_gpu(job["gpu"], job["visible_devices"])
    except MachineError as error:
        yield {"gpu.found": {"error": str(error)}}
    else:
        yield {"gpu.found": {"value": gpu is not None}}
    if gpu is not None:
        yield _gpu(gpu.uuid)
        os.environ["CUDA_VISIBLE_DEVICES"] = gpu.uuid
    yield {"torch.import": reading_of(lambda: bool(importlib.import_module("torch")))}
    yield software_context()
    if gpu is not None and "torch" in sys.modules:
        yield from _proof(with_cupti=job["timer"] in ("auto", "cupti"))


def _host(visible_devices: str | None) -> dict[str, JsonReading]:
    """What the operating system tells without a library of NVIDIA's."""
    readings: dict[str, JsonReading] = {
        "python.executable": {"value": sys.executable},
        "host.wsl": reading_of(lambda: "microsoft" in _text("/proc/version").lower()),
        "host.container": reading_of(_in_container),
        "host.kernel_module": reading_of(lambda: Path("/proc/driver/nvidia/version").exists()),
        "host.device_files": reading_of(lambda: len(list(Path("/dev").glob("nvidia[0-9]*")))),
        "host.may_lock_clocks": reading_of(_may_administer),
    }
    if visible_devices is not None:
        readings["env.CUDA_VISIBLE_DEVICES"] = {"value": visible_devices}
    for name in _INJECTIONS:
        if value := os.environ.get(name):
            readings[f"env.{name}"] = {"value": value}
    return readings


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def _in_container() -> bool:
    marks = ("/.dockerenv", "/run/.containerenv")
    return any(Path(mark).exists() for mark in marks) or "KUBERNETES_SERVICE_HOST" in os.environ


def _may_administer() -> bool:
    """Whether NVML would let this process lock clocks; found out without trying."""
    if os.geteuid() == 0:
        return True
    line = next(line for line in _text("/proc/self/status").splitlines() if line.startswith("CapEff:"))
    return bool(int(line.split()[1], 16) >> _CAP_SYS_ADMIN & 1)


def _nvml_works() -> JsonReading:
    try:
        open_nvml()
    except MachineError as error:
        return {"error": str(error)}
    return {"value": True}


def _gpu(uuid: str) -> dict[str, JsonReading]:
    """NVML's readings, taken before this process uses the GPU: every process it lists is another."""
    try:
        telemetry = NvmlTelemetry(uuid)
    except MachineError as error:
        return {"gpu.uuid": {"error": str(error)}}
    clock, reasons = telemetry.clock_and_reasons()
    readings = dict(telemetry.context())
    readings["gpu.clock_readable"] = {"value": clock is not None}
    readings["gpu.clock_reasons"] = (
        {"error": "NVML cannot say what limits the clock"} if reasons is None else {"value": reasons}
    )
    return readings


def _proof(*, with_cupti: bool) -> Iterator[dict[str, JsonReading]]:
    """Whether known kernels leave the records they should, and whether CUDA works without CUPTI."""
    if with_cupti:
        readings = _try_out(with_cupti=True)
        works = readings.pop("works")
        yield readings | {"cupti.works": works}
        if "value" in works:
            yield {"cuda.works": works}
            return
    readings = _try_out(with_cupti=False)
    works = readings.pop("works")
    yield readings | {"cuda.works": works}


def _try_out(*, with_cupti: bool) -> dict[str, JsonReading]:
    try:
        readings: dict[str, Any] = dict(probe_gpu(with_cupti=with_cupti)[0])
    except MachineError as error:
        return {"works": {"error": str(error)}}
    except Exception as error:  # noqa: BLE001 - whatever stood in the way is the reading
        return {"works": {"error": f"{type(error).__name__}: {error}"}}
    return readings | {"works": {"value": True}}
