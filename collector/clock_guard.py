"""Clocks as the user asked for them while a run measures, and as they were afterwards.

NVML is asked by a worker of its own; this is the parent's side. A lock outlives every process,
so a note on disk is written before the clock is locked and removed once it has been given back.
A note that is left when nobody holds the GPU any more tells the next run what to undo.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

from collector.claims import ClockNote, note_path, read_note, write_note
from collector.errors import ClocksError, ClocksNotRestoredError, CollectorError, MachineError, WorkerError
from store.records import ClockRegime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from collector.host import Host
    from collector.protocol import Request
    from collector.run import Plan, Watcher
    from collector.session import Session

ANSWER_LIMIT_S = 120.0
_MW_PER_W = 1000


def undo_left_lock(session: Session, watcher: Watcher) -> None:
    """Give back the clocks that a killed run left locked. To be called by the holder of the GPU's lock.

    Raises:
        ClocksError: it cannot be done here; the message says who can.
    """
    uuid = session.loaded.gpu_uuid
    note = None if uuid is None else read_note(uuid)
    if note is None:
        return
    with session.clock_host() as host:
        _Clocks(host).ask({"do": "unlock", "power_limit_mw": note.power_limit_mw})
    note_path(note.uuid).unlink(missing_ok=True)
    power = f", its power limit is {note.power_limit_mw / _MW_PER_W:g} W again" if note.power_limit_mw else ""
    watcher.note(
        f"process {note.pid} was killed and left the clock of {note.uuid} locked at {note.mhz} MHz: "
        f"it is unlocked now{power}"
    )


@contextlib.contextmanager
def clocks_as_asked(session: Session, plan: Plan, watcher: Watcher) -> Iterator[None]:
    """Lock or verify the clocks, and give locked ones back whatever happens inside.

    What is then known is added to the session's context: ``clocks.sm_mhz``, the SM clock that
    was proven under load, and ``clocks.power_limit_w``, where one was set. Clocks that are held
    or free need nothing here.

    Raises:
        MachineError: there is no GPU, or its clocks are not, or cannot be made, as asked.
    """
    if plan.clocks not in (ClockRegime.LOCKED, ClockRegime.VERIFY):
        yield
        return
    if session.loaded.gpu_uuid is None:
        raise MachineError(
            f"--clocks {plan.clocks} needs an NVIDIA GPU and none was found: leave it out to measure here"
        )
    if plan.clocks is ClockRegime.VERIFY:
        with session.clock_host() as host:
            answer = _Clocks(host).ask({"do": "verify", "mhz": plan.clock_mhz})
        session.collected.context["clocks.sm_mhz"] = {"value": answer["sm_mhz"]}
        yield
        return
    with session.clock_host() as host, _locked(session, _Clocks(host), plan, watcher):
        yield


@contextlib.contextmanager
def _locked(session: Session, clocks: _Clocks, plan: Plan, watcher: Watcher) -> Iterator[None]:
    uuid, mhz = session.loaded.gpu_uuid, plan.clock_mhz
    if uuid is None or mhz is None:
        raise AssertionError("a clock is locked on a GPU, at a frequency")
    limit_mw = None if plan.power_limit_w is None else round(plan.power_limit_w * _MW_PER_W)
    earlier_mw = None if limit_mw is None else clocks.ask({"do": "power_limit"})["power_limit_mw"]
    note = ClockNote(uuid, os.getpid(), mhz, earlier_mw)
    write_note(note)
    try:
        answer = clocks.ask({"do": "lock", "mhz": mhz, "power_limit_mw": limit_mw})
    except ClocksNotRestoredError:
        raise  # the note stays: the next run tries again
    except MachineError:
        note_path(uuid).unlink(missing_ok=True)  # refused in good order: nothing is left to undo
        raise
    except BaseException:
        _give_back(session, clocks, note, watcher)
        raise
    context = session.collected.context
    context["clocks.sm_mhz"] = {"value": answer["sm_mhz"]}
    if plan.power_limit_w is not None:
        context["clocks.power_limit_w"] = {"value": plan.power_limit_w}
    try:
        yield
    finally:
        _give_back(session, clocks, note, watcher)


def _give_back(session: Session, clocks: _Clocks, note: ClockNote, watcher: Watcher) -> None:
    """Unlock. A failure is said and leaves the note, but costs nothing of what was measured."""
    request: Request = {"do": "unlock", "power_limit_mw": note.power_limit_mw}
    with _undisturbed():
        try:
            try:
                clocks.ask(request)
            except WorkerError:  # the worker is gone: another one can do it
                with session.clock_host() as host:
                    _Clocks(host).ask(request)
        except CollectorError as error:
            watcher.note(f"the clock of {note.uuid} is still locked at {note.mhz} MHz: {error}")
            return
        note_path(note.uuid).unlink(missing_ok=True)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off Ctrl-C and SIGTERM until the end: an impatient second one must not leave a clock locked."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not reach other threads
        return
    missed: list[int] = []
    earlier = {
        number: signal.signal(number, lambda received, _: missed.append(received))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
    if missed:
        signal.raise_signal(missed[0])


class _Clocks:
    """Asks a worker host about the clocks of its GPU."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._owed = 0  # requests whose end has not been read; an interrupt leaves one behind

    def ask(self, request: Request) -> dict[str, Any]:
        """Have a request done and return its answer.

        Raises:
            MachineError: as the worker raised it.
            WorkerError: the worker ended or hung instead.
        """
        self._owed += 1
        self._host.tell(request)
        answer: dict[str, Any] | None = None
        while True:
            message = self._host.answer(ANSWER_LIMIT_S)
            kind = message["type"]
            if kind in ("late", "gone"):
                raise WorkerError(f"the worker that controls the clocks is {kind}\n{self._host.log_tail()}")
            if kind != "done":
                answer = message
                continue
            self._owed -= 1
            if not self._owed:
                break
            answer = None
        if answer is None:
            raise WorkerError(
                f"the worker that controls the clocks ended with status {message['status']}\n"
                f"{self._host.log_tail()}"
            )
        if answer["type"] == "fatal":
            raise _ERRORS.get(answer["kind"], MachineError)(answer["message"])
        return answer


_ERRORS = {error.__name__: error for error in (ClocksError, ClocksNotRestoredError)}
