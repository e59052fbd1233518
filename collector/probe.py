"""What a machine says about itself, and proof that the timer works on it, in a process of its own."""

from __future__ import annotations

import platform
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collector.attribution import attribute
from collector.errors import CuptiError, TimingError
from collector.telemetry import reading_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from collector.cupti_session import CuptiSession
    from collector.device import Device
    from collector.protocol import JsonReading

CANARY_LAUNCHES = 8


def software_context() -> dict[str, JsonReading]:
    """Versions of what runs in the interpreter under test."""
    torch: Any = sys.modules.get("torch")
    readings = {
        "python.version": reading_of(platform.python_version),
        "host.name": reading_of(platform.node),
        "host.kernel": reading_of(platform.release),
        "host.machine": reading_of(platform.machine),
        "cupti_python.version": reading_of(lambda: metadata.version("cupti-python")),
        "cupti.version": reading_of(lambda: metadata.version("nvidia-cuda-cupti")),
        "triton.version": reading_of(lambda: metadata.version("triton")),
    }
    if torch is None:
        readings["torch.version"] = {"error": "torch is not installed"}
        return readings
    readings["torch.version"] = reading_of(lambda: torch.__version__)
    readings["torch.cuda"] = reading_of(lambda: torch.version.cuda or "none")
    readings["torch.threads"] = reading_of(torch.get_num_threads)
    return readings


def probe_gpu(*, with_cupti: bool) -> tuple[dict[str, JsonReading], bool]:
    """Touch the GPU once and, for the CUPTI timer, prove that records arrive and losses are counted.

    Returns:
        Readings of the device as CUDA sees it, and whether the drop counter counts.

    Raises:
        CuptiError: known kernels left no records, or wrong ones.
    """
    from collector.device import CudaDevice

    session = None
    if with_cupti:
        from collector.cupti_session import CuptiSession

        session = CuptiSession()
        session.start()
    try:
        import torch

        device = CudaDevice()
        properties = torch.cuda.get_device_properties(device.index)
        readings: dict[str, JsonReading] = {
            "cuda.l2_bytes": reading_of(lambda: int(properties.L2_cache_size)),
            "cuda.multiprocessors": reading_of(lambda: int(properties.multi_processor_count)),
            "cuda.runtime": reading_of(lambda: torch.version.cuda),
        }
        proven = False
        if session is not None:
            proven = prove_recording(session, device)
            readings["cupti.drop_counter_proven"] = {"value": proven}
            readings["cupti.library"] = reading_of(
                lambda: library_in(Path("/proc/self/maps").read_text(encoding="utf-8"))
            )
    finally:
        if session is not None:
            session.stop()
    return readings, proven


def prove_recording(session: CuptiSession, device: Device) -> bool:
    """Prove that records arrive and losses are counted, and that nobody else listens.

    Returns:
        Whether the drop counter counts.

    Raises:
        CuptiError: known kernels left no records, or wrong ones, or another profiler is at work.
    """
    import torch

    values = torch.ones(1024, device="cuda")
    _canary(session, device, lambda: values.add_(1.0))

    def launch() -> None:
        for _ in range(4):
            values.add_(1.0)
        device.drain()

    proven = session.prove_drop_counter(launch)
    session.refuse_other_subscriber()
    return proven


def library_in(maps: str) -> str | None:
    """The file that CUPTI was loaded from; several on one machine are a common cause of trouble.

    Args:
        maps: what ``/proc/self/maps`` says.
    """
    return next((line.split(maxsplit=5)[-1] for line in maps.splitlines() if "libcupti.so" in line), None)


def _canary(session: CuptiSession, device: Device, call: Callable[[], object]) -> None:
    """Launch known kernels and demand their records."""
    call()
    device.drain()
    session.discard()
    session.trust_drop_counter(proven=True)
    for iteration in range(CANARY_LAUNCHES):
        session.push(iteration)
        call()
        session.pop()
        device.drain()
    trace = session.take()
    try:
        attributed = attribute(trace, iterations=CANARY_LAUNCHES, device_id=device.index)
    except TimingError as error:
        raise CuptiError(
            f"CUPTI records cannot be trusted on this machine: of {CANARY_LAUNCHES} known kernels, {error}"
        ) from error
    if any(sample.n_kernels != 1 for sample in attributed.samples):
        raise CuptiError(
            "CUPTI recorded more kernels than were launched: another tool records in this process"
        )
