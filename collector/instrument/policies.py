"""Clock policies: what is done about the SM clock around a measurement, and undone after it."""

from __future__ import annotations

import contextlib
import math
import os
import signal
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Protocol

from collector.claims import ClockNote, note_path, write_note
from collector.clocks import MatmulLoad, lock, power_limit_mw, unlock, verify
from collector.errors import ClocksNotRestoredError, MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MW_PER_W = 1000


class ClockPolicy(Protocol):
    """What ``measure``, ``bench_kernel`` and ``compare`` take as their policy."""

    @property
    def paces(self) -> bool:
        """Pause before an iteration as long as the clock asks for."""

    @property
    def controls_clock(self) -> bool:
        """Whether a steady clock may be taken for what this policy promises: tier A needs it."""

    @property
    def says(self) -> str:
        """What was done about the clock, as a clause for the tier's evidence."""

    def applied(self, uuid: str) -> contextlib.AbstractContextManager[None]:
        """Apply the policy to a GPU, and restore what was there before, whatever happens inside.

        Called with the GPU's device made current and its lock file held.

        Raises:
            MachineError: the clock is not, or cannot be made, as the policy wants it.
        """


@dataclass(frozen=True)
class UnlockedClockPolicy:
    """Change nothing, and say that the clock floated."""

    paces: ClassVar[bool] = False
    controls_clock: ClassVar[bool] = False
    says: ClassVar[str] = "the clock floated: nothing was done about it"

    def applied(self, uuid: str) -> contextlib.AbstractContextManager[None]:
        """Do nothing."""
        del uuid
        return contextlib.nullcontext()


@dataclass(frozen=True)
class HeldClockPolicy:
    """Pause before an iteration as long as the GPU needs to stay below its power limit.

    Needs no privilege. Where the clock holds by itself there is no pause. Where the right pause
    was found too late, the window is measured again with it, up to three windows in all.
    """

    paces: ClassVar[bool] = True
    controls_clock: ClassVar[bool] = True
    says: ClassVar[str] = "the clock was held by pausing"

    def applied(self, uuid: str) -> contextlib.AbstractContextManager[None]:
        """Do nothing to the GPU: the pauses are part of the loop."""
        del uuid
        return contextlib.nullcontext()


@dataclass(frozen=True)
class LockedClockPolicy:
    """Lock the SM clock through NVML and prove under load that it stands there.

    Needs root or CAP_SYS_ADMIN. Afterwards the lock is released and the power limit is what it
    was. SIGTERM ends the measurement and restores too; a killed process leaves a note, and the
    next measurement on this GPU, here or by ``collect``, restores for it.

    Args:
        target_sm_mhz: SM clock in MHz.
        power_cap_w: power limit in watts while it is locked; None leaves it as it is.

    Raises:
        ValueError: a number that no clock or limit can be.
    """

    target_sm_mhz: int
    power_cap_w: float | None = None

    paces: ClassVar[bool] = False
    controls_clock: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.target_sm_mhz <= 0:
            raise ValueError(f"target_sm_mhz is {self.target_sm_mhz}: give the SM clock in MHz, such as 1500")
        if self.power_cap_w is not None and not (math.isfinite(self.power_cap_w) and self.power_cap_w > 0):
            raise ValueError(f"power_cap_w is {self.power_cap_w}: give watts, such as 500")

    @property
    def says(self) -> str:
        """At which clock."""
        return f"the clock was locked at {self.target_sm_mhz} MHz"

    @contextlib.contextmanager
    def applied(self, uuid: str) -> Iterator[None]:
        """Lock, and give back.

        Raises:
            ClocksError: it could not be locked, or does not stand under load; nothing is changed then.
            ClocksNotRestoredError: it could not be given back; the message names the commands.
        """
        limit_mw = None if self.power_cap_w is None else round(self.power_cap_w * _MW_PER_W)
        earlier_mw = None if limit_mw is None else power_limit_mw(uuid)
        with _ended_by_sigterm():
            write_note(ClockNote(uuid, os.getpid(), self.target_sm_mhz, earlier_mw))
            try:
                lock(uuid, self.target_sm_mhz, MatmulLoad(), power_limit_mw=limit_mw)
            except ClocksNotRestoredError:
                raise  # the note stays: whoever measures next tries again
            except MachineError:
                note_path(uuid).unlink(missing_ok=True)
                raise
            try:
                yield
            finally:
                unlock(uuid, power_limit_mw=earlier_mw)
                note_path(uuid).unlink(missing_ok=True)


@dataclass(frozen=True)
class VerifyClockPolicy:
    """Change nothing, and refuse to measure unless an administrator has locked the clock.

    Args:
        target_sm_mhz: the clock to find, in MHz; None accepts any that stands still under load.
    """

    target_sm_mhz: int | None = None

    paces: ClassVar[bool] = False
    controls_clock: ClassVar[bool] = True
    says: ClassVar[str] = "the clock was verified under load"

    @contextlib.contextmanager
    def applied(self, uuid: str) -> Iterator[None]:
        """Look.

        Raises:
            ClocksError: the clock moves under load, is another one, or something limits it.
        """
        verify(uuid, self.target_sm_mhz, MatmulLoad())
        yield


@contextlib.contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Let SIGTERM unwind the stack, where it would end the process on the spot."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # signals do not reach other threads; a handler of the program's own decides for itself
        return

    def end(number: int, frame: object) -> None:
        del frame
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
