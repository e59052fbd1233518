"""The SM clock of one GPU: locked and proven under load, given back, or only looked at.

Runs in worker processes. NVML cannot say whether a clock is locked, and a driver may accept
a lock without keeping it, so the proof is the clock that NVML reads while a load runs. A lock
outlives the process that made it: whoever locks must make sure that it is undone.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

from collector.errors import ClocksError, ClocksNotRestoredError
from collector.pacing import CLOCK_BAND_MHZ, REASONS_BENIGN, reason_names
from collector.telemetry import NvmlTelemetry, open_nvml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.protocol import Request

SETTLING_READINGS = 50  # a clock needs some tens of milliseconds to leave its idle state
READINGS = 20
_MATMUL_SIZE = 1024  # keeps the clock up at a fraction of the power limit, which must not decide here
_MATMULS_PER_READING = 1000  # about 10 ms on a large card, 100 ms on a small one


class Load(Protocol):
    """Work that keeps a GPU out of its idle clock."""

    def push(self) -> None:
        """Queue some milliseconds of work; does not wait."""

    def drain(self) -> None:
        """Wait until all of it is done."""


class MatmulLoad:
    """Small matrix products by way of torch, on the one visible CUDA device.

    Raises:
        ClocksError: torch cannot be imported, or cannot use the device.
    """

    def __init__(self) -> None:
        try:
            import torch

            self._torch: Any = torch
            self._factor = torch.randn(_MATMUL_SIZE, _MATMUL_SIZE, device="cuda", dtype=torch.float16)
            self._product = torch.mm(self._factor, self._factor)
        except (ImportError, AssertionError, RuntimeError) as error:  # torch without CUDA asserts
            raise ClocksError(
                f"the clock can only be proven while the GPU works, and torch cannot use it: {error}"
            ) from error

    def push(self) -> None:
        """Queue the products."""
        for _ in range(_MATMULS_PER_READING):
            self._torch.mm(self._factor, self._factor, out=self._product)

    def drain(self) -> None:
        """Wait for the device."""
        self._torch.cuda.synchronize()


def serve_clocks(uuid: str, request: Request) -> dict[str, Any]:
    """Do what a parent asks about the clocks of a GPU, and make the message that answers it.

    Raises:
        MachineError: see ``lock``, ``verify``, ``unlock`` and ``power_limit_mw``.
    """
    answer: dict[str, Any] = {"type": "clocks"}
    if request["do"] == "power_limit":
        answer["power_limit_mw"] = power_limit_mw(uuid)
    elif request["do"] == "lock":
        if request["mhz"] is None:
            raise ClocksError(f"locking the SM clock of {uuid} needs a clock: add --clock-mhz MHZ")
        answer["sm_mhz"] = lock(uuid, request["mhz"], MatmulLoad(), power_limit_mw=request["power_limit_mw"])
    elif request["do"] == "verify":
        answer["sm_mhz"] = verify(uuid, request["mhz"], MatmulLoad())
    else:
        unlock(uuid, power_limit_mw=request["power_limit_mw"])
    return answer


def power_limit_mw(uuid: str) -> int:
    """The power limit that is set now, in milliwatts, for giving it back later.

    Raises:
        ClocksError: NVML cannot read it.
    """
    nvml, handle = _device(uuid)
    with _explained(nvml, "reading the power limit", uuid):
        return int(nvml.nvmlDeviceGetPowerManagementLimit(handle))


def lock(uuid: str, mhz: int, load: Load, *, power_limit_mw: int | None = None) -> int:
    """Lock the SM clock, and prove under load that it stands there.

    Args:
        uuid: of the GPU.
        mhz: SM clock in MHz; the driver takes the nearest step it has.
        load: what the GPU does while its clock is read.
        power_limit_mw: power limit to set too, in milliwatts; None leaves it as it is.

    Returns:
        The SM clock under load, in MHz.

    Raises:
        ClocksError: it could not be done. Whatever had been changed has been undone.
        ClocksNotRestoredError: nor could that.
    """
    nvml, handle = _device(uuid)
    _require_persistence(nvml, handle, uuid)
    with contextlib.ExitStack() as undo:
        if power_limit_mw is not None:
            with _explained(nvml, "reading the power limit", uuid):
                earlier = int(nvml.nvmlDeviceGetPowerManagementLimit(handle))
            with _explained(nvml, f"setting the power limit to {power_limit_mw / 1e3:g} W", uuid):
                nvml.nvmlDeviceSetPowerManagementLimit(handle, power_limit_mw)
            undo.callback(_give_back, nvml, handle, uuid, power_limit_mw=earlier, clock=False)
            _require_power_limit(nvml, handle, uuid, power_limit_mw)
        with _explained(nvml, f"locking the SM clock at {mhz} MHz", uuid):
            nvml.nvmlDeviceSetGpuLockedClocks(handle, mhz, mhz)
        undo.callback(_give_back, nvml, handle, uuid, power_limit_mw=None, clock=True)
        clock = _clock_under_load(uuid, mhz, load, refuse_limits=False)
        undo.pop_all()
    return clock


def unlock(uuid: str, *, power_limit_mw: int | None) -> None:
    """Give the clock back to the driver, and the power limit the value it had.

    Args:
        uuid: of the GPU.
        power_limit_mw: the earlier limit in milliwatts; None leaves it as it is.

    Raises:
        ClocksNotRestoredError: it could not be done; the message names the commands that do it.
    """
    nvml, handle = _device(uuid)
    _give_back(nvml, handle, uuid, power_limit_mw=power_limit_mw, clock=True)


def verify(uuid: str, mhz: int | None, load: Load) -> int:
    """Assert that the SM clock stands still under load, and change nothing.

    Args:
        uuid: of the GPU.
        mhz: the clock an administrator has locked, in MHz; None accepts any that stands still.
        load: what the GPU does while its clock is read.

    Returns:
        The SM clock under load, in MHz.

    Raises:
        ClocksError: it moved, is another one, or something limits it.
    """
    return _clock_under_load(uuid, mhz, load, refuse_limits=True)


def _device(uuid: str) -> tuple[Any, Any]:
    nvml = open_nvml()
    with _explained(nvml, "the look-up", uuid):
        return nvml, nvml.nvmlDeviceGetHandleByUUID(uuid)


def _require_persistence(nvml: Any, handle: Any, uuid: str) -> None:
    """A driver that unloads between two processes would forget the lock in the middle of a run."""
    try:
        persistent = bool(nvml.nvmlDeviceGetPersistenceMode(handle))
    except nvml.NVMLError_NotSupported:
        return  # a platform whose driver stays loaded
    except nvml.NVMLError as error:
        raise ClocksError(f"reading the persistence mode of {uuid} failed: {error}") from error
    if not persistent:
        raise ClocksError(
            f"persistence mode of {uuid} is off, so its driver forgets a lock as soon as no process "
            f"uses the GPU: have an administrator run `nvidia-smi -i {uuid} -pm 1` first"
        )


def _require_power_limit(nvml: Any, handle: Any, uuid: str, wanted_mw: int) -> None:
    with _explained(nvml, "reading the power limit", uuid):
        found = int(nvml.nvmlDeviceGetPowerManagementLimit(handle))
    if found != wanted_mw:
        raise ClocksError(
            f"the power limit of {uuid} is {found / 1e3:g} W after it was set to {wanted_mw / 1e3:g} W: "
            f"something else sets it too, or the driver ignores it; leave --power-limit out"
        )


def _give_back(nvml: Any, handle: Any, uuid: str, *, power_limit_mw: int | None, clock: bool) -> None:
    """Undo what was changed; both parts are tried whatever becomes of the other."""
    attempts: list[tuple[Callable[[], Any], str]] = []
    if clock:
        attempts.append((lambda: nvml.nvmlDeviceResetGpuLockedClocks(handle), f"nvidia-smi -i {uuid} -rgc"))
    if power_limit_mw is not None:
        attempts.append(
            (
                lambda: nvml.nvmlDeviceSetPowerManagementLimit(handle, power_limit_mw),
                f"nvidia-smi -i {uuid} -pl {power_limit_mw / 1e3:g}",
            )
        )
    failed = []
    for attempt, command in attempts:
        try:
            attempt()
        except nvml.NVMLError as error:
            failed.append((error, command))
    if failed:
        raise ClocksNotRestoredError(
            f"the clocks of {uuid} could not be given back: {failed[0][0]}. Have an administrator run "
            + " and ".join(f"`{command}`" for _, command in failed)
        )


def _clock_under_load(uuid: str, wanted: int | None, load: Load, *, refuse_limits: bool) -> int:
    """The SM clock while the load runs, demanded to be the wanted one, or at least to stand still."""
    telemetry = NvmlTelemetry(uuid)
    clocks, limits = [], 0
    for reading in range(SETTLING_READINGS + READINGS):
        try:
            load.push()
            clock, reasons = telemetry.clock_and_reasons()
            load.drain()
        except RuntimeError as error:  # how torch reports what CUDA refuses
            raise ClocksError(f"the load that proves the clock of {uuid} failed: {error}") from error
        if clock is None or reasons is None:
            raise ClocksError(
                f"NVML cannot read the SM clock of {uuid} or what limits it, so nothing proves that it "
                "stands still: measure with --clocks free"
            )
        if reading >= SETTLING_READINGS:
            clocks.append(clock)
            limits |= reasons & ~REASONS_BENIGN
    common = Counter(clocks).most_common(1)[0][0]
    expected = common if wanted is None else wanted
    because = f" (limited by: {reason_names(limits)})" if limits else ""
    if max(abs(clock - expected) for clock in clocks) > CLOCK_BAND_MHZ:
        raise ClocksError(
            f"the SM clock of {uuid} under load is {_span(clocks)} MHz, not {expected} MHz within "
            f"{CLOCK_BAND_MHZ} MHz{because}: choose a clock that this GPU keeps under load "
            f"(`nvidia-smi -q -d SUPPORTED_CLOCKS` lists them), have it locked, or use --clocks held"
        )
    if limits and refuse_limits:
        raise ClocksError(
            f"the SM clock of {uuid} is {_span(clocks)} MHz, but limited under load by: "
            f"{reason_names(limits)}. Have a lower clock locked, or use --clocks held"
        )
    return common


def _span(clocks: list[int]) -> str:
    return str(clocks[0]) if min(clocks) == max(clocks) else f"{min(clocks)} to {max(clocks)}"


@contextlib.contextmanager
def _explained(nvml: Any, what: str, uuid: str) -> Iterator[None]:
    """Turn what NVML refuses into an error that says what to do."""
    try:
        yield
    except nvml.NVMLError_NoPermission as error:
        raise ClocksError(
            f"{what} of {uuid} was refused: {error}. It needs root or CAP_SYS_ADMIN: run collect "
            f"with it, or have an administrator lock the clock (`nvidia-smi -i {uuid} -lgc MHZ`) and use "
            "--clocks verify"
        ) from error
    except nvml.NVMLError_NotSupported as error:
        raise ClocksError(
            f"{what} of {uuid} is something this GPU or its driver cannot do: use --clocks held"
        ) from error
    except nvml.NVMLError as error:
        raise ClocksError(f"{what} of {uuid} failed: {error}") from error
