"""Measuring a suite: passes in fresh processes, where a failure costs one case alone."""

from __future__ import annotations

import contextlib
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from collector.errors import MachineError, WorkerError
from collector.host import Host, memory_limit_bytes
from collector.loaded import loaded_from
from collector.protocol import PROTOCOL_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from collector.loaded import CaseInfo, Loaded
    from collector.protocol import Job

LOAD_LIMIT_S = 300.0  # importing torch and the suites
PROBE_LIMIT_S = 120.0
START_LIMIT_S = 60.0  # from a request to the first word of its process


@dataclass
class Collected:
    """What the passes gave so far; whole whenever it is looked at.

    Attributes:
        windows: by case key, the window messages in pass order, each with its ``pass_index``.
        failures: failure messages, each with ``case`` (a key or None) and ``pass_index``.
    """

    windows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    failures: list[dict[str, Any]] = field(default_factory=list)
    context: dict[str, Any] = field(default_factory=dict)


class Session:
    """One job on one machine, from loading the suites to the last pass.

    Args:
        python: the interpreter of the code under test.
        job: what to measure and how.
        traces: folder that receives the raw records of the first pass, or None.
        memory_bytes: what one pass may hold; most of what is available now by default.

    Raises:
        CollectorError: the interpreter does not run, or the job cannot be done on this machine.
    """

    def __init__(
        self, python: str, job: Job, *, traces: str | None = None, memory_bytes: int | None = None
    ) -> None:
        self._python = python
        self._job = job
        self._traces = traces
        self._memory_limit_bytes = memory_bytes or memory_limit_bytes()
        self._pacing: dict[str, list[float]] = {}
        self._broken: set[str] = set()
        self._drop_counter_proven = False
        self._fruitless = False  # the last process ended before its first case
        self.collected = Collected()
        self._host = self._new_host()
        try:
            self.loaded = self._load(self._host)
        except BaseException:
            self._host.close()
            raise
        self.collected.failures.extend(dict(failure, pass_index=None) for failure in self.loaded.failures)

    def close(self) -> None:
        """End the worker processes."""
        self._host.close()

    def share_pacing(self, other: Session) -> None:
        """From now on what one session learns about the pauses of a case is known to both."""
        self._pacing = other._pacing

    def step_aside(self) -> None:
        """Leave the GPU to another session until the next pass.

        A host whose passes cannot be forked from it has used the GPU itself, and the other
        session would find a strange process there.
        """
        if self.loaded.fork_refused is not None:
            self._host.close()

    def _new_host(self) -> Host:
        return Host(self._python, self._job, memory_limit_bytes=self._memory_limit_bytes)

    @contextlib.contextmanager
    def clock_host(self) -> Iterator[Host]:
        """A worker host without suites, for requests about the clocks.

        It has nothing to do with the passes: whatever a benchmark does to its own host, this
        one is there to give the clocks back.

        Raises:
            CollectorError: it could not be started.
        """
        job = self._job.copy()
        job["suites"], job["timer"], job["gpu"] = [], "wall", self.loaded.gpu_uuid
        host = Host(self._python, job, memory_limit_bytes=self._memory_limit_bytes)
        try:
            self._load(host)
            yield host
        finally:
            host.close()

    def _load(self, host: Host) -> Loaded:
        message = host.answer(LOAD_LIMIT_S)
        if message["type"] == "fatal":
            raise MachineError(message["message"])
        if message["type"] != "loaded":
            reason = (
                f"it took longer than {LOAD_LIMIT_S:.0f} s"
                if message["type"] == "late"
                else f"it ended with status {host.exit_code()}"
            )
            raise WorkerError(
                f"the worker ({self._python}) could not load the suites: {reason}. Give --python an "
                f"interpreter of Python 3.10 or newer, and look at what it printed:\n{host.log_tail()}"
            )
        if message["protocol"] != PROTOCOL_VERSION:
            raise WorkerError(f"the worker speaks protocol {message['protocol']}, not {PROTOCOL_VERSION}")
        return loaded_from(message, self._job["only"])

    def probe(self) -> None:
        """Read the machine's context and prove that the timer works.

        Raises:
            MachineError: it does not; the message says what to do.
        """
        self._host.tell({"do": "probe", "fork": self.loaded.fork_refused is None})
        self.collected.context.update(self.loaded.context)
        while (message := self._host.answer(PROBE_LIMIT_S))["type"] != "done":
            if message["type"] == "fatal":
                raise MachineError(message["message"])
            if message["type"] in ("late", "gone"):
                ended = (
                    "took too long" if message["type"] == "late" else f"ended with {self._host.exit_code()}"
                )
                raise WorkerError(f"the worker {ended} while probing the GPU\n{self._host.log_tail()}")
            self.collected.context.update(message["context"])
            self._drop_counter_proven = message["drop_counter_proven"]
        if message["status"] != 0:
            raise WorkerError(
                f"probing the GPU ended with status {message['status']}\n{self._host.log_tail()}"
            )

    def run_pass(self, pass_index: int, seed: int, finished: Callable[[CaseInfo], None]) -> None:
        """Give every case that has not failed one window, in an order drawn from the seed.

        Args:
            pass_index: from 0.
            seed: the run's seed; each pass has an order of its own.
            finished: told of each case when it is done, for better or worse; of those that have
                failed for good at once.
        """
        workloads: dict[str, list[CaseInfo]] = {}
        for case in self.loaded.cases:
            workloads.setdefault(case.subject, []).append(case)
        order = list(workloads.values())
        random.Random(f"{seed}/{pass_index}").shuffle(order)  # noqa: S311 - an order, not a secret
        cases = [case for workload in order for case in workload]  # implementations stay together
        waiting = [(position, case) for position, case in enumerate(cases) if case.key not in self._broken]
        for case in cases:
            if case.key in self._broken:
                finished(case)
        while waiting:
            try:
                waiting = self._run_process(pass_index, waiting, finished)
            except (MachineError, WorkerError) as error:
                if not self.collected.windows:
                    raise
                self._give_up(waiting, pass_index, error, finished)
                return

    def _give_up(
        self,
        waiting: list[tuple[int, CaseInfo]],
        pass_index: int,
        error: MachineError | WorkerError,
        finished: Callable[[CaseInfo], None],
    ) -> None:
        """The machine fails in the middle of a run: keep what it gave, and say of each case what it lacks."""
        done = {
            key
            for key, windows in self.collected.windows.items()
            if any(window["pass_index"] == pass_index for window in windows)
        }
        for _, case in waiting:
            if case.key not in done and case.key not in self._broken:
                finished(case)
        for case in self.loaded.cases:
            if case.key not in self._broken:
                self._broken.add(case.key)
                self._note_failure(
                    case,
                    pass_index,
                    type(error).__name__,
                    f"no more windows from pass {pass_index} on, because the machine failed: {error}",
                    log="",
                )

    def _run_process(
        self, pass_index: int, waiting: list[tuple[int, CaseInfo]], finished: Callable[[CaseInfo], None]
    ) -> list[tuple[int, CaseInfo]]:
        """Run cases in one process until it ends; returns those it did not get to."""
        forks = self.loaded.fork_refused is None
        host = self._host if forks else self._fresh_host()
        host.tell(self._request(pass_index, waiting, forks=forks))
        by_key = {case.key: (position, case) for position, case in waiting}
        running: CaseInfo | None = None
        done = 0
        while True:
            message = host.answer(START_LIMIT_S if running is None else running.time_limit_s)
            kind = message["type"]
            if kind == "begin":
                running = by_key[message["case"]][1]
            elif kind in ("window", "failed"):
                self._keep(message, pass_index)
                finished(by_key.pop(message["case"])[1])
                running, done = None, done + 1
            elif kind == "fatal":
                raise MachineError(message["message"])
            else:
                break
        if kind == "late":
            host.kill_pass()
        status = message.get("status") if kind == "done" else _await_end(host, kind)
        if running is not None:
            self._fail(running, pass_index, kind, status, host)
            finished(by_key.pop(running.key)[1])
        elif not done and self._fruitless:
            raise WorkerError(
                f"two processes in a row ended before their first case, the last with status {status}: "
                f"see what they printed\n{host.log_tail()}"
            )
        self._fruitless = running is None and not done
        if forks and (kind == "gone" or self._fruitless):
            self._fresh_host()
        return list(by_key.values())

    def _request(
        self, pass_index: int, waiting: list[tuple[int, CaseInfo]], *, forks: bool
    ) -> dict[str, Any]:
        """What the host is asked for: one window of each case that waits, in this order."""
        return {
            "do": "pass",
            "fork": forks,
            "pass_index": pass_index,
            "cases": [case.key for _, case in waiting],
            "positions": [position for position, _ in waiting],
            "pacing": self._pacing,
            "drop_counter_proven": self._drop_counter_proven,
            "traces": self._traces if pass_index == 0 else None,
        }

    def _fresh_host(self) -> Host:
        """A new host in the place of the one before: it died, or its passes cannot be forked."""
        self._host.close()
        self._host = self._new_host()
        self._load(self._host)
        return self._host

    def _keep(self, message: dict[str, Any], pass_index: int) -> None:
        key = message["case"]
        message["pass_index"] = pass_index
        if message.pop("type") == "failed":
            # A benchmark that raises will raise again; a timer that refused a window may give the next.
            if message["stage"] != "measure":
                self._broken.add(key)
            self.collected.failures.append(message)
            return
        self._pacing[key] = message.pop("pacing")
        self.collected.windows.setdefault(key, []).append(message)

    def _fail(self, case: CaseInfo, pass_index: int, kind: str, status: int | None, host: Host) -> None:
        """The process died, hung or was killed while it ran this case."""
        self._broken.add(case.key)
        if host.exceeded is not None:
            code, what = "memory-limit" if "memory" in host.exceeded else "output-limit", host.exceeded
        elif kind == "late":
            code = "time-limit"
            what = f"it did not finish within {case.time_limit_s:g} s; raise time_limit_s if it needs longer"
        elif status is not None and status < 0:
            code, what = f"signal-{-status}", f"its process was killed by signal {-status}"
        else:
            code, what = f"exit-{status}", f"its process ended by itself with status {status}"
        self._note_failure(
            case, pass_index, code, f"{case.label} gave no window: {what}", log=host.log_tail()
        )

    def _note_failure(self, case: CaseInfo, pass_index: int, kind: str, message: str, *, log: str) -> None:
        """A failure that no message of the worker tells."""
        self.collected.failures.append(
            {
                "case": case.key,
                "stage": "worker",
                "kind": kind,
                "message": message,
                "source": case.source,
                "log": log,
                "pass_index": pass_index,
            }
        )


def _await_end(host: Host, kind: str) -> int | None:
    """How the killed or vanished process ended; None where it cannot be told."""
    if kind == "gone":
        return host.exit_code()
    if not host.runs_pass:
        return None  # it never said which process it is: its host must go as a whole
    message = host.answer(START_LIMIT_S)
    while message["type"] not in ("done", "gone", "late"):
        message = host.answer(START_LIMIT_S)  # words it had sent before it was killed
    return message.get("status")
