"""A small world of one GPU: torch, CUPTI and NVML as far as the instrument sees them, on one clock.

Kernels run one after another on a device clock, launching takes host time, events stand in the
device's queue, and what is launched while CUPTI records leaves real record objects.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import fake_cupti
import fake_nvml
from fake_cupti import FakeCupti, record, shapes
from nvml_machine import FIRST_UUID, SECOND_UUID, NvmlMachine, a_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pytest

LAUNCH_NS = 2000
EVENT_NS = 500
FLUSH_NS = 50_000
KERNEL_SHAPE, COPY_SHAPE, API_SHAPE = (
    shapes("ActivityKernel")[-1],
    shapes("ActivityMemcpy")[-1],
    "ActivityAPI",
)
FULL_SPEED_MHZ = 1980


@dataclass
class GpuWorld:
    """What happens, and a diary of it.

    Attributes:
        log: what was done, in order.
        at_exit: what would be done when the process ends.
        clock_mhz: SM clock that NVML reads; None where it cannot.
        reasons: mask that NVML reads; None likewise.
    """

    cupti: WorldCupti
    nvml: NvmlMachine
    log: list[str] = field(default_factory=list)
    now_ns: int = 1_000_000_000
    device_free_ns: int = 0
    clock_mhz: int | None = FULL_SPEED_MHZ
    reasons: int | None = 0
    current_device: int = 0
    at_exit: list[Callable[[], object]] = field(default_factory=list)

    def launch(self, duration_us: float, name: str = "kernel") -> None:
        """Queue a kernel, as the calling thread would."""
        self.now_ns += LAUNCH_NS
        called = self.now_ns
        start = max(called + 1000, self.device_free_ns)
        self.device_free_ns = start + round(duration_us * 1000)
        self.log.append(name)
        self.cupti.launched(called, start, self.device_free_ns, name, self.current_device)

    def copy(self, duration_us: float) -> None:
        """Queue a copy."""
        self.launch(duration_us, "memcpy")

    def kernel(self, duration_us: float, name: str = "kernel") -> Callable[[], None]:
        """A call of one kernel."""
        return lambda: self.launch(duration_us, name)

    def count(self, entry: str) -> int:
        """How often something was done."""
        return self.log.count(entry)

    def synchronize(self, device: int | None = None) -> None:
        self.log.append("drain" if device in (None, self.current_device) else "drain elsewhere")
        self.now_ns = max(self.now_ns, self.device_free_ns) + 100


class WorldCupti(FakeCupti):
    """Records what the world launches, while it is told to.

    Attributes:
        drops_below: buffers smaller than this lose a record.
        flushed_bytes: the buffer size at every delivery of records.
    """

    def __init__(self) -> None:
        super().__init__()
        self.world: GpuWorld
        self.drops_below = 0
        self.flushed_bytes: list[int] = []
        self.recording = False
        self._stacks: dict[int, list[int]] = {}
        self._correlation = 0

    def launched(self, called: int, start: int, end: int, name: str, device: int) -> None:
        if not self.recording:
            return
        self._correlation += 1
        copied = name == "memcpy"
        times: dict[str, Any] = {"start": start, "end": end, "correlation_id": self._correlation}
        stack = self._stacks.get(threading.get_ident())
        if stack:
            self.records.append(
                record(
                    "ActivityExternalCorrelation",
                    "EXTERNAL_CORRELATION",
                    external_kind=int(self.ExternalCorrelationKind.CUSTOM0),
                    external_id=stack[-1],
                    correlation_id=self._correlation,
                )
            )
        api = self.runtime_api_trace_cbid["cudaMemcpyAsync_v3020" if copied else "cudaLaunchKernel_v7000"]
        self.records.append(
            record(
                API_SHAPE,
                "RUNTIME",
                start=called,
                end=called + 500,
                correlation_id=self._correlation,
                cbid=int(api),
                thread_id=1,
            )
        )
        if copied:
            self.records.append(record(COPY_SHAPE, "MEMCPY", device_id=device, bytes=4096, **times))
        else:
            self.records.append(
                record(KERNEL_SHAPE, "CONCURRENT_KERNEL", device_id=device, name=name, **times)
            )

    def activity_enable(self, kind: Any) -> None:
        super().activity_enable(kind)
        self.recording = self.recording or kind == self.ActivityKind.CONCURRENT_KERNEL

    def activity_disable(self, kind: Any) -> None:
        super().activity_disable(kind)
        self.recording = self.recording and kind != self.ActivityKind.CONCURRENT_KERNEL

    def activity_flush_all(self, flag: int) -> None:
        if self._requested is not None and self.records:
            size = self._requested()[0]
            self.flushed_bytes.append(size)
            if 0 < size < self.drops_below:
                self.records.pop()
                self.losses.append(1)
        super().activity_flush_all(flag)

    def activity_push_external_correlation_id(self, kind: Any, number: int) -> None:
        if kind == self.ExternalCorrelationKind.CUSTOM0:
            self._stacks.setdefault(threading.get_ident(), []).append(number)

    def activity_pop_external_correlation_id(self, kind: Any) -> int:
        if kind != self.ExternalCorrelationKind.CUSTOM0:
            return 0
        stack = self._stacks.get(threading.get_ident())
        if not stack:
            raise self.cuptiError(_QUEUE_EMPTY)
        return stack.pop()

    def get_timestamp(self) -> int:
        self.world.now_ns += 50
        return self.world.now_ns


_QUEUE_EMPTY = 15


class _Event:
    """A CUDA event of the world."""

    def __init__(self, world: GpuWorld, *, enable_timing: bool) -> None:
        if not enable_timing:
            raise AssertionError("an event that is read was made to tell the time")
        self._world = world
        self._at_ns: int | None = None
        world.log.append("new event")

    def record(self) -> None:
        world = self._world
        world.log.append("record")
        self._at_ns = max(world.now_ns, world.device_free_ns) + EVENT_NS
        world.device_free_ns = self._at_ns

    def elapsed_time(self, end: _Event) -> float:
        """Milliseconds."""
        if self._at_ns is None or end._at_ns is None:
            raise AssertionError("an event was read that was never recorded")
        return (end._at_ns - self._at_ns) / 1e6


class _Buffer:
    """Device memory."""

    def __init__(self, world: GpuWorld, size: int) -> None:
        self._world = world
        self.size = size

    def zero_(self) -> None:
        self._world.launch(FLUSH_NS / 1000, "flush")

    def add_(self, value: float) -> None:
        del value
        self._world.launch(2, "add")


def _torch_of(world: GpuWorld) -> ModuleType:
    torch: Any = ModuleType("torch")
    torch.__version__ = "2.0"
    torch.int8, torch.float16 = "int8", "float16"
    torch.empty = lambda size, dtype, device: _empty(world, size, dtype, device)
    torch.ones = lambda size, device: _Buffer(world, size)  # noqa: ARG005
    torch.randn = lambda *shape, device, dtype: None  # noqa: ARG005
    torch.mm = lambda left, right, out=None: None  # noqa: ARG005
    torch.cuda = SimpleNamespace(
        is_available=lambda: True,
        device_count=lambda: 2,
        set_device=lambda index: setattr(world, "current_device", index),
        device=lambda index: _device(world, index),
        synchronize=world.synchronize,
        get_device_properties=lambda index: SimpleNamespace(
            L2_cache_size=60 << 20, uuid=(FIRST_UUID, SECOND_UUID)[index].removeprefix("GPU-")
        ),
        Event=lambda enable_timing: _Event(world, enable_timing=enable_timing),
    )
    return torch  # type: ignore[no-any-return]


def _empty(world: GpuWorld, size: int, dtype: str, device: str) -> _Buffer:
    world.log.append(f"allocate {size} {dtype} on {device}")
    return _Buffer(world, size)


@contextlib.contextmanager
def _device(world: GpuWorld, index: int) -> Iterator[None]:
    """Make a device current, and the earlier one again."""
    earlier, world.current_device = world.current_device, index
    try:
        yield
    finally:
        world.current_device = earlier


def a_gpu_world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> GpuWorld:
    """Put a world in the place of torch, CUPTI, NVML and the driver library of this process."""
    monkeypatch.setattr(fake_cupti, "FakeCupti", WorldCupti)
    cupti: Any = fake_cupti.install(monkeypatch)
    world = GpuWorld(cupti, a_machine(folder))
    cupti.world = world
    world.nvml.change_machine(working=True)
    world.nvml.use_here(monkeypatch)
    monkeypatch.setitem(sys.modules, "torch", _torch_of(world))
    library = SimpleNamespace(cuCtxResetPersistingL2Cache=lambda: world.log.append("reset persisting lines"))
    monkeypatch.setattr("collector.device.ctypes", SimpleNamespace(CDLL=lambda name: library))  # noqa: ARG005
    monkeypatch.setattr(tempfile, "tempdir", str(folder))  # of lock files and notes

    def at_exit(work: Callable[..., object], *arguments: object) -> None:
        world.at_exit.append(lambda: work(*arguments))

    monkeypatch.setattr("collector.instrument.recording._sessions", {})
    monkeypatch.setattr("collector.instrument.recording.atexit", SimpleNamespace(register=at_exit))
    _read_the_clock_of(world, monkeypatch)
    return world


def _read_the_clock_of(world: GpuWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVML's two readings of every iteration, from the world instead of the file, and in the diary."""

    def clock(handle: int, kind: int) -> int:
        if kind != fake_nvml.NVML_CLOCK_SM:
            return 3201
        world.log.append("clock")
        if world.clock_mhz is None:
            raise fake_nvml.NVMLError_NotSupported(fake_nvml.NVML_ERROR_NOT_SUPPORTED)
        return int(world.nvml.gpu((FIRST_UUID, SECOND_UUID)[handle])["locked_mhz"] or world.clock_mhz)

    def reasons(handle: int) -> int:
        del handle
        if world.reasons is None:
            raise fake_nvml.NVMLError_NotSupported(fake_nvml.NVML_ERROR_NOT_SUPPORTED)
        return world.reasons

    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetClockInfo", clock)
    monkeypatch.setattr(fake_nvml, "nvmlDeviceGetCurrentClocksEventReasons", reasons)
