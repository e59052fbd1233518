"""One pass, in a process of its own: every case gets one window.

Implementations of one workload are all set up first and then measured in turn, in the order
A B C C B A: whatever drifts while they are measured meets them alike. Each has half of its
window on the way up and half on the way back.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from collector.device import CudaDevice, Device, HostDevice
from collector.errors import CollectorError, CuptiError
from collector.halves import pooled
from collector.pacing import Pacer
from collector.protocol import send
from collector.suite import SuiteError, check_output, locate, set_up
from collector.suspend import slept_s
from collector.telemetry import NoTelemetry, NvmlTelemetry, Telemetry
from collector.timers import CuptiTimer, EventTimer, Timer, WallTimer
from collector.traces import write_trace
from collector.window import SUITE_BUDGET, Rig, measure_window

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from collector.cupti_session import CuptiSession
    from collector.protocol import Job, Request
    from collector.suite import BenchmarkCase, Call
    from collector.window import Budget


@dataclass
class Host:
    """What a host knows once it has loaded its job."""

    job: Job
    timer: str
    gpu_uuid: str | None
    cases: dict[str, BenchmarkCase]
    results: IO[str]
    log: int  # descriptor of the log, whatever a benchmark does to its standard output
    tells_imports: int | None = None  # in a forked pass: what the host should import too
    slept_s: float = field(default_factory=slept_s)  # before the run; passes inherit it


def run_pass(host: Host, request: Request) -> None:
    """Give every case of the request one window, in its order."""
    known = set(sys.modules)
    session = _start_session(host.timer, proven=bool(request.get("drop_counter_proven")))
    try:
        bench = Bench(host, request, session)
        order = zip((host.cases[key] for key in request["cases"]), request["positions"], strict=True)
        for _, together in groupby(order, key=lambda place: place[0].workload):
            _measure([bench.station(case, position) for case, position in together], bench)
            _release_memory()
            _tell_imports(host, known)
            if not bench.device.alive():
                return  # the parent sees that cases are left and starts another process for them
    finally:
        if session is not None:
            session.stop()


def _tell_imports(host: Host, known: set[str]) -> None:
    """Tell the host which parts of torch were imported since the last look; a pass may outlive it."""
    late = [name for name in sys.modules if name not in known]
    known.update(late)
    parts = "".join(f"{name}\n" for name in late if name.startswith("torch."))
    if parts and host.tells_imports is not None:
        with contextlib.suppress(OSError):
            os.write(host.tells_imports, parts.encode())


def _start_session(timer: str, *, proven: bool) -> CuptiSession | None:
    """Recording must be on before the CUDA context exists and before anything is warmed up."""
    if timer != "cupti":
        return None
    from collector.cupti_session import CuptiSession

    session = CuptiSession()
    session.start()
    session.trust_drop_counter(proven=proven)
    return session


@dataclass
class Station:
    """One case of a pass, from its set-up to its window.

    Attributes:
        call: what is timed, from the end of the set-up until it fails.
        windows: one window message, or two halves.
    """

    case: BenchmarkCase
    position: int
    timer: Timer
    pacer: Pacer
    call: Call | None = None
    ready_ms: float = 0.0
    windows: list[dict[str, Any]] = field(default_factory=list)


class Bench:
    """What a pass measures with, and whom it tells."""

    def __init__(self, host: Host, request: Request, session: CuptiSession | None) -> None:
        # NVML first: of a GPU that is lost it says so, and CUDA something unspecific.
        self.telemetry: Telemetry = NoTelemetry() if host.gpu_uuid is None else NvmlTelemetry(host.gpu_uuid)
        self.device: Device = HostDevice() if host.gpu_uuid is None else CudaDevice()
        self.slept_s = host.slept_s
        self._holds_clocks = host.job["clocks"] == "held" and host.gpu_uuid is not None
        self._host = host
        self._request = request
        self._session = session
        self._announced: BenchmarkCase | None = None

    def station(self, case: BenchmarkCase, position: int) -> Station:
        """A place for a case, with a timer and a pacer of its own."""
        pause_ms, too_short_ms = self._request["pacing"].get(case.key, (0.0, 0.0))
        pacer = Pacer(self._holds_clocks, pause_ms, too_short_ms)
        return Station(case, position, self._timer(case), pacer)

    def _timer(self, case: BenchmarkCase) -> Timer:
        cold = not case.options.warm_cache and not isinstance(self.device, HostDevice)
        if self._host.timer == "events":
            return EventTimer(self.device, cold=cold)
        if self._host.timer == "wall":
            return WallTimer(self.device, cold=cold)
        if self._session is None:
            raise CuptiError("the CUPTI timer was asked for without a session")
        return CuptiTimer(
            self._session,
            self.device,
            count_copies=case.options.count_copies,
            any_thread=case.options.launches_from_any_thread,
            cold=cold,
        )

    def announce(self, station: Station) -> None:
        """Say which case runs from here on: what breaks now is its fault, and the log is its own."""
        if self._announced is station.case:
            return
        self._announced = station.case
        written = os.fstat(self._host.log).st_size
        begin = {"type": "begin", "case": station.case.key, "pid": os.getpid(), "log_bytes": written}
        send(self._host.results, begin)

    def tell(self, station: Station, message: dict[str, Any]) -> None:
        """Send what became of a case."""
        self._announced = None
        send(self._host.results, message | {"case": station.case.key, "position": station.position})
        traces, timer = self._request.get("traces"), station.timer
        if traces and isinstance(timer, CuptiTimer) and timer.trace is not None:
            write_trace(Path(traces), station.case.label, timer.trace, message)


def _measure(stations: Sequence[Station], bench: Bench) -> None:
    """Set up all implementations of one workload, measure them in turn and tell what came of it."""
    ready = [station for station in stations if _attempted(station, bench, _get_ready)]
    rounds, work = ([ready], _measure_whole) if len(ready) == 1 else ([ready, ready[::-1]], _measure_half)
    for stations_in_turn in rounds:
        for station in stations_in_turn:
            if station.call is None:
                continue  # its first half failed
            if not _attempted(station, bench, work) and not bench.device.alive():
                return  # nothing that is left could be measured in this process
    for station in ready:
        if station.call is not None:
            bench.tell(station, {"type": "window", **station.windows[0]})


def _attempted(station: Station, bench: Bench, work: Callable[[Station, Bench], None]) -> bool:
    """Do a part of the work on a case; whatever goes wrong becomes a failure message."""
    bench.announce(station)
    try:
        work(station, bench)
    except SuiteError as error:
        message = {"type": "failed", **failure(error, station.case)}
    except CollectorError as error:
        message = {
            "type": "failed", "stage": "measure", "kind": type(error).__name__, "message": str(error),
            "source": station.case.source, "log": "",
        }  # fmt: skip
    except BaseException as error:  # noqa: BLE001 - the benchmark may raise anything, SystemExit too
        message = {"type": "failed", **failure(locate("call", error, station.case), station.case)}
    else:
        return True
    station.call = None  # what it holds is not needed, and may be in the way of the next
    bench.tell(station, message)
    return False


def _get_ready(station: Station, bench: Bench) -> None:
    """Set the case up, call it once and check what it returns."""
    begun = time.perf_counter()
    with station.timer.preparing():
        call = set_up(station.case)
        call()
        bench.device.drain()
        check_output(station.case, call)
    station.call = call
    station.ready_ms = (time.perf_counter() - begun) * 1e3


def _measure_whole(station: Station, bench: Bench) -> None:
    station.windows = [_window(station, bench, SUITE_BUDGET, station.case.options.iterations)]


def _measure_half(station: Station, bench: Bench) -> None:
    """Measure the first half of a window, or the second and put the two together."""
    asked = station.case.options.iterations
    half = _window(station, bench, SUITE_BUDGET.halved(), None if asked is None else math.ceil(asked / 2))
    station.windows = [pooled(station.windows[0], half)] if station.windows else [half]


def _window(station: Station, bench: Bench, budget: Budget, iterations: int | None) -> dict[str, Any]:
    if station.call is None:
        raise AssertionError("a case is set up before it is measured")
    rig = Rig(
        timer=station.timer,
        device=bench.device,
        telemetry=bench.telemetry,
        pacer=station.pacer,
        reset=station.call.reset,
        clears_cache=not station.case.options.warm_cache,
        budget=budget,
        iterations=iterations,
        warmup_calls=station.case.options.warmup_calls,
        slept_s=bench.slept_s,
    )
    window = measure_window(station.call.run, rig).to_json()
    window["telemetry"]["phase.setup_ms"] = {"value": station.ready_ms}
    station.ready_ms = 0.0  # counted once, in the first half
    return window


def failure(error: SuiteError, case: BenchmarkCase | None) -> dict[str, Any]:
    """What is wrong with a suite or a case, for a message."""
    return {
        "stage": error.stage,
        "kind": error.kind,
        "message": error.message,
        "source": error.source,
        "log": error.log,
        "case": None if case is None else case.key,
    }


def _release_memory() -> None:
    """Give cached device memory back, so that one case does not decide where the next one lies."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        with contextlib.suppress(RuntimeError):  # a poisoned context cannot free; the caller sees that
            torch.cuda.empty_cache()
