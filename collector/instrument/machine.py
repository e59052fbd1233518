"""The GPU that a person measures on, claimed for as long as it takes."""

from __future__ import annotations

import contextlib
import fcntl
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collector.claims import lock_path, note_path, open_shared, read_note
from collector.clocks import unlock
from collector.device import CudaDevice
from collector.errors import GpuNotFoundError, MachineError, TelemetryError
from collector.telemetry import NoTelemetry, NvmlTelemetry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.telemetry import Telemetry


@dataclass(frozen=True)
class Gpu:
    """A claimed GPU.

    Attributes:
        uuid: as NVML spells it.
        no_telemetry: why NVML cannot be asked, or None.
    """

    uuid: str
    device: CudaDevice
    telemetry: Telemetry
    no_telemetry: str | None


@contextlib.contextmanager
def claimed_gpu(index: int) -> Iterator[Gpu]:
    """Make a CUDA device the current one, and keep other measurements off it.

    Args:
        index: of the device, as torch numbers it.

    Raises:
        MachineError: there is no usable CUDA device; nothing is timed by the host instead.
        GpuNotFoundError: no device has this index.
        ClocksError: an earlier measurement left the clock locked, and it cannot be unlocked.
    """
    torch = _torch_with_cuda(index)
    uuid = str(torch.cuda.get_device_properties(index).uuid)
    uuid = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    with torch.cuda.device(index), _exclusive(uuid):
        _undo_left_lock(uuid)
        telemetry, no_telemetry = _telemetry(uuid)
        yield Gpu(uuid, CudaDevice(index), telemetry, no_telemetry)


def _torch_with_cuda(index: int) -> Any:
    try:
        import torch
    except ImportError as error:
        raise MachineError(f"torch cannot be imported ({error}): install it to measure on a GPU") from error
    if not torch.cuda.is_available():
        raise MachineError(
            f"torch {torch.__version__} finds no CUDA device, and host time is never taken in place of "
            "device time: measure on a machine with an NVIDIA GPU, or use `collect --timer wall` here"
        )
    count = torch.cuda.device_count()
    if not 0 <= index < count:
        raise GpuNotFoundError(f"there is no CUDA device {index}: torch sees {count}, numbered from 0")
    return torch


def _telemetry(uuid: str) -> tuple[Telemetry, str | None]:
    """NVML for this GPU, or the reason why there is none; tier A is then out of reach."""
    try:
        return NvmlTelemetry(uuid), None
    except TelemetryError as error:
        return NoTelemetry(), str(error)


@contextlib.contextmanager
def _exclusive(uuid: str) -> Iterator[None]:
    """Hold the lock that keeps two measurements off one GPU; does not wait, since a person would not know."""
    path = lock_path(uuid)
    with open_shared(path) as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise MachineError(
                f"something else measures on {uuid} (a collect, another notebook, or a measurement around "
                f"this one): try again when it has ended ({path})"
            ) from error
        yield


def _undo_left_lock(uuid: str) -> None:
    """Give back the clock that a killed process left locked. Its lock file is held here, so it is gone."""
    note = read_note(uuid)
    if note is None:
        return
    unlock(uuid, power_limit_mw=note.power_limit_mw)
    note_path(uuid).unlink(missing_ok=True)
    warnings.warn(
        f"process {note.pid} was killed and left the clock of {uuid} locked at {note.mhz} MHz: it is "
        "unlocked now",
        stacklevel=5,
    )
