"""One window: calibrate, warm up until the clock has settled, then the timed iterations."""

from __future__ import annotations

import gc
import math
import os
import statistics
import time
from dataclasses import dataclass, field
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from collector.errors import RecordsLostError
from collector.pacing import REASONS_BENIGN
from collector.suspend import slept_s, why_invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collector.device import Device
    from collector.pacing import Pacer
    from collector.protocol import JsonReading
    from collector.telemetry import Telemetry
    from collector.timers import Timer, Timings

WARMUP_MAX_MS = 1500.0  # a clock that has not settled by then is measured as it is
RECOVERY_MS = 400.0
RECOVERIES_MAX = 3
CALIBRATION_CALLS = 3
ATTEMPTS = 3
PACED_COUNTERS = ("power_cap", "thermal")  # limits that a longer pause can avoid
_LAST_CALLS = 9  # the end of the warm-up tells what one iteration costs


@dataclass(frozen=True)
class Budget:
    """How long a window warms up and measures, and between how many iterations.

    The defaults are those of one measurement on its own.
    """

    warmup_ms: float = 25.0
    measure_ms: float = 100.0
    iterations_min: int = 10
    iterations_max: int = 200

    def iterations(self, cost_ms: float) -> int:
        """Iterations that fit, when one costs so much from end to end."""
        if not cost_ms > 0:  # below what the host's clock can tell
            return self.iterations_max
        return min(self.iterations_max, max(self.iterations_min, math.floor(self.measure_ms / cost_ms)))

    def halved(self) -> Budget:
        """For one of two halves of a window."""
        return Budget(
            warmup_ms=self.warmup_ms / 2,
            measure_ms=self.measure_ms / 2,
            iterations_min=math.ceil(self.iterations_min / 2),
            iterations_max=math.ceil(self.iterations_max / 2),
        )


# One window of several: what windows differ by between processes outweighs what more samples
# in one would tell (docs/decisions/0005-windows-and-passes.md).
SUITE_BUDGET = Budget(warmup_ms=15.0, measure_ms=50.0, iterations_max=50)


@dataclass(frozen=True)
class Rig:
    """Everything a window is measured with.

    Attributes:
        reset: called before every iteration, outside the timed region.
        clears_cache: clear L2 before every iteration.
        slept_s: how long the machine had been suspended when the run began; what it sleeps
            since then spoils the window.
    """

    timer: Timer
    device: Device
    telemetry: Telemetry
    pacer: Pacer
    reset: Callable[[], object] | None = None
    clears_cache: bool = True
    budget: Budget = SUITE_BUDGET
    iterations: int | None = None
    warmup_calls: int | None = None
    slept_s: float = field(default_factory=slept_s)


@dataclass
class Progress:
    """What was seen iteration by iteration."""

    pause_ms: list[float] = field(default_factory=list)
    sm_clock_mhz: list[int | None] = field(default_factory=list)
    throttle_reasons: list[int | None] = field(default_factory=list)


@dataclass(frozen=True)
class MeasuredWindow:
    """A window as the worker sends it.

    Attributes:
        telemetry: readings of temperature, power, memory clock, and by how much the throttle
            counters moved while the samples were taken (``throttle.<name>``).
        invalid: why the window must not count, or None.
        next_pause_ms, too_short_ms: what pacing learnt, for the next window of the case.
    """

    started_at: datetime
    timings: Timings
    progress: Progress
    warmup_calls: int
    warmup_ms: float
    attempts: int
    telemetry: dict[str, JsonReading]
    invalid: str | None
    next_pause_ms: float
    too_short_ms: float

    def to_json(self) -> dict[str, Any]:
        """The window as JSON values, for the protocol."""
        timings = self.timings
        return {
            "pid": os.getpid(),
            "started_at": self.started_at.isoformat(),
            "quantity": timings.quantity,
            "cold": timings.cold,
            "resolution_ms": timings.resolution_ms,
            "samples_ms": timings.samples_ms,
            "latency_ms": timings.latency_ms,
            "sum_ms": timings.sum_ms,
            "copy_ms": timings.copy_ms,
            "n_kernels": timings.n_kernels,
            "inner_reps": timings.inner_reps,
            "launches": [
                [s.name, s.grid, s.block, s.cluster, s.registers, s.shared_bytes, count]
                for s, count in timings.launches
            ],
            "pause_ms": self.progress.pause_ms,
            "sm_clock_mhz": self.progress.sm_clock_mhz,
            "throttle_reasons": self.progress.throttle_reasons,
            "warmup_calls": self.warmup_calls,
            "warmup_ms": self.warmup_ms,
            "attempts": self.attempts,
            "telemetry": self.telemetry,
            "invalid": self.invalid,
            "pacing": [self.next_pause_ms, self.too_short_ms],
        }


def measure_window(call: Callable[[], object], rig: Rig) -> MeasuredWindow:
    """Measure one window of ``call``.

    Lost records cost the whole window: it is measured again with a buffer four times as
    large, three attempts in all. So does a limit that held the clock down between two
    samples, which only the throttle counters tell: then with a longer pause.

    Raises:
        TimingError: the window gave no trustworthy number.
    """
    started_at = datetime.now(timezone.utc)  # noqa: UP017 - the code under test may run on Python 3.10
    rig.pacer.begin(_call_ms(call, rig))
    for attempt in range(1, ATTEMPTS + 1):
        calls, warmup_ms, cost_ms = _warm_up(call, rig)
        try:
            iterations = rig.iterations or rig.budget.iterations(cost_ms)
            timings, progress, telemetry, invalid = _timed_loop(call, rig, iterations)
        except RecordsLostError:
            if attempt == ATTEMPTS:
                raise
            rig.timer.enlarge()
            continue
        if attempt < ATTEMPTS and _limited_unseen(rig, progress, telemetry):
            rig.pacer.lengthen()
            continue
        return MeasuredWindow(
            started_at=started_at,
            timings=timings,
            progress=progress,
            warmup_calls=calls,
            warmup_ms=warmup_ms,
            attempts=attempt,
            telemetry=telemetry,
            invalid=invalid,
            next_pause_ms=rig.pacer.next_pause_ms,
            too_short_ms=rig.pacer.too_short_ms,
        )
    raise AssertionError("unreachable: the last attempt returns or raises")


def _call_ms(call: Callable[[], object], rig: Rig) -> float:
    """How long a call takes, from a few of them, in milliseconds: the shortest, launch and wait included."""
    taken = []
    for _ in range(CALIBRATION_CALLS):
        begin = time.perf_counter()
        with rig.timer.preparing():
            call()
        rig.device.drain()
        taken.append((time.perf_counter() - begin) * 1e3)
    return min(taken)


def _prepare(rig: Rig) -> float:
    """Everything before a call that is not the call; returns the pause that was made."""
    pause_ms = rig.pacer.pause_ms
    with rig.timer.preparing():
        if rig.reset is not None:
            rig.reset()
        if pause_ms:
            time.sleep(pause_ms / 1e3)
        if rig.clears_cache:
            rig.device.clear_cache()
        rig.device.drain()
        if rig.timer.settles:
            rig.device.settle()
    return pause_ms


def _warm_up(call: Callable[[], object], rig: Rig) -> tuple[int, float, float]:
    """Run the loop untimed until time, count and clock say that it has settled.

    Returns:
        (calls made, milliseconds spent, milliseconds one iteration costs now).
    """
    least = rig.timer.warmup_calls_min if rig.warmup_calls is None else rig.warmup_calls
    begin = time.perf_counter()
    ends = [begin]
    while True:
        now = _untimed(call, rig)
        ends.append(now)
        calls, elapsed_ms = len(ends) - 1, (now - begin) * 1e3
        enough = calls >= least and elapsed_ms >= rig.budget.warmup_ms
        if enough and (rig.pacer.settled or elapsed_ms >= WARMUP_MAX_MS):
            recent = ends[-_LAST_CALLS - 1 :]
            # The median, since reading a full buffer of records delays single iterations by a lot.
            cost_ms = statistics.median(after - before for before, after in pairwise(recent)) * 1e3
            return calls, elapsed_ms, cost_ms


def _untimed(call: Callable[[], object], rig: Rig) -> float:
    """One iteration of the loop that counts for nothing but the clock; returns when it ended."""
    _prepare(rig)
    with rig.timer.preparing():
        call()
    rig.device.drain()
    return _observe(rig)[2]


def _observe(rig: Rig) -> tuple[int | None, int | None, float]:
    """Read the clock after an iteration and tell the pacer; returns clock, reasons and the time in s."""
    clock, reasons = rig.telemetry.clock_and_reasons()
    now = time.perf_counter()
    rig.pacer.observe(clock, reasons)
    return clock, reasons, now


def _recover(call: Callable[[], object], rig: Rig) -> None:
    """After the clock fell, go on untimed until it is back: one fall then costs one sample, not many.

    A clock that does not come back asks for a longer pause still.
    """
    for _ in range(RECOVERIES_MAX):
        begin = time.perf_counter()
        while not rig.pacer.settled:
            if (_untimed(call, rig) - begin) * 1e3 > RECOVERY_MS:
                break
        else:
            return
        rig.pacer.lengthen()


def _timed_loop(
    call: Callable[[], object], rig: Rig, iterations: int
) -> tuple[Timings, Progress, dict[str, JsonReading], str | None]:
    progress = Progress()
    before = rig.telemetry.throttle_counters()
    others = _other_processes(rig.telemetry)
    gc_was_on = gc.isenabled()
    gc.disable()  # a collection inside an iteration would only delay the next launch, but not equally
    try:
        rig.timer.begin(iterations, call)
        begun = time.perf_counter()
        for iteration in range(iterations):
            progress.pause_ms.append(_prepare(rig))
            rig.timer.time(iteration, call)
            clock, reasons, _ = _observe(rig)
            progress.sm_clock_mhz.append(clock)
            progress.throttle_reasons.append(reasons)
            if rig.pacer.hold and not rig.pacer.settled:
                _recover(call, rig)
    finally:
        if gc_was_on:
            gc.enable()
    looped = time.perf_counter()
    timings = rig.timer.finish()
    read = time.perf_counter()
    others = max(others, _other_processes(rig.telemetry))
    invalid = why_invalid(rig.slept_s)
    if others:
        invalid = f"{others} other processes used the GPU: keep it to the benchmark alone"
    telemetry = dict(rig.telemetry.window_readings())
    telemetry["phase.loop_ms"] = {"value": (looped - begun) * 1e3}
    telemetry["phase.read_ms"] = {"value": (read - looped) * 1e3}
    telemetry.update(_moved(before, rig.telemetry.throttle_counters()))
    return timings, progress, telemetry, invalid


def _limited_unseen(rig: Rig, progress: Progress, telemetry: Mapping[str, JsonReading]) -> bool:
    """Whether a software limit was active during the loop though every sample looked undisturbed."""
    seen = any((reasons or 0) & ~REASONS_BENIGN for reasons in progress.throttle_reasons)
    moved = any(telemetry.get(f"throttle.{name}", {}).get("value") for name in PACED_COUNTERS)
    return rig.pacer.hold and moved and not seen


def _other_processes(telemetry: Telemetry) -> int:
    """Processes on the GPU besides this one; where they cannot be listed none is assumed seen."""
    count = telemetry.process_count()
    return 0 if count is None else max(0, count - 1)


def _moved(before: Any, after: Any) -> dict[str, JsonReading]:
    moved: dict[str, JsonReading] = {}
    for name, value in after.items():
        earlier = before.get(name)
        if value is None or earlier is None:
            moved[f"throttle.{name}"] = {"error": "not counted by this GPU or driver"}
        else:
            moved[f"throttle.{name}"] = {"value": value - earlier}
    return moved
