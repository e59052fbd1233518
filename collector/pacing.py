"""How long to wait before the next iteration, so that the GPU keeps its clock: pure.

Back-to-back launches of heavy kernels reach the power limit, the SM clock falls and the
times with it. A pause lets the average power drop again. How long it must be depends on the
kernel: a least one follows the length of the call, and evidence adds to it, doubling the pause
when the clock fell. A clock that is low because of what ran before, or that has not recovered
yet, is no evidence: it must have settled first. What is found in one window is where the next
window of the same case begins.
"""

from __future__ import annotations

from dataclasses import dataclass

# NVML's clocks-event-reason bits (nvml.h). The first two say nothing about the load.
REASON_IDLE = 0x1
REASON_APPLICATION_CLOCKS = 0x2
REASON_SW_POWER_CAP = 0x4
REASON_HW_SLOWDOWN = 0x8
REASON_SYNC_BOOST = 0x10
REASON_SW_THERMAL = 0x20
REASON_HW_THERMAL = 0x40
REASON_HW_POWER_BRAKE = 0x80
REASONS_BENIGN = REASON_IDLE | REASON_APPLICATION_CLOCKS
REASONS_HARDWARE = REASON_HW_SLOWDOWN | REASON_HW_THERMAL | REASON_HW_POWER_BRAKE

CLOCK_BAND_MHZ = 30
CALL_UNPAUSED_MS = 0.1
PAUSE_SHARE = 6.0
PAUSE_LEAST_MAX_MS = 10.0
PAUSE_FIRST_MS = 1.0
PAUSE_MAX_MS = 40.0
PAUSE_MIN_MS = 0.5  # a shorter one is tried without
RELAX = 0.75  # a pause that held a whole window is tried shorter in the next
MARGIN = 1.25  # but stays this far above one that was too short
SETTLED_AFTER = 5  # iterations in a row at an undisturbed clock


def reason_names(mask: int) -> str:
    """The set bits of a reason mask in words; unknown bits are named by their value."""
    known = {
        REASON_IDLE: "idle",
        REASON_APPLICATION_CLOCKS: "application clocks",
        REASON_SW_POWER_CAP: "power limit",
        REASON_HW_SLOWDOWN: "hardware slowdown",
        REASON_SYNC_BOOST: "sync boost",
        REASON_SW_THERMAL: "thermal limit",
        REASON_HW_THERMAL: "hardware thermal limit",
        REASON_HW_POWER_BRAKE: "power brake",
    }
    names = [known.get(1 << bit, f"unknown reason {1 << bit:#x}") for bit in range(64) if mask >> bit & 1]
    return ", ".join(names) or "none"


def least_pause_ms(call_ms: float) -> float:
    """The pause before a call of this length that every window makes, in milliseconds.

    A pause changes what is measured: paused by a millisecond or more, a softmax of 205 us took
    0.5 % longer on an H200 than without, at the same clock. Were the pause left to what a run
    happened to learn, two runs of the same code would differ by that. So its bulk depends on
    the length of the call alone, and continuously: calls up to 0.1 ms keep their clock by
    themselves, between the flushes of the cache, and for each millisecond more six are paused.
    """
    return round(min(PAUSE_LEAST_MAX_MS, max(0.0, PAUSE_SHARE * (call_ms - CALL_UNPAUSED_MS))), 2)


@dataclass
class Pacer:
    """Chooses the pause before each iteration from the clock after the one before.

    Attributes:
        hold: adapt the pause; False leaves it at zero whatever the clock does.
        pause_ms: the pause before the next iteration.
        too_short_ms: the longest pause known not to hold the clock; 0 where none is known.
    """

    hold: bool
    pause_ms: float = 0.0
    too_short_ms: float = 0.0
    _least_ms: float = 0.0
    _clock_best_mhz: int = 0
    _steady: int = 0
    _fell: bool = False

    def begin(self, call_ms: float) -> None:
        """Set the pause that every window of a call of this length makes, whatever was learnt.

        Args:
            call_ms: how long one call takes.
        """
        if self.hold:
            self._least_ms = least_pause_ms(call_ms)
            self.pause_ms = max(self.pause_ms, self._least_ms)

    def observe(self, clock_mhz: int | None, reasons: int | None) -> None:
        """Take in what NVML said right after an iteration.

        Args:
            clock_mhz: SM clock; None where NVML could not say.
            reasons: mask of what limits it; None likewise.
        """
        if clock_mhz is None:
            self._steady += 1  # without telemetry there is nothing to wait for
            return
        self._clock_best_mhz = max(self._clock_best_mhz, clock_mhz)
        limited = bool((reasons or 0) & ~REASONS_BENIGN)
        if not limited and clock_mhz >= self._clock_best_mhz - CLOCK_BAND_MHZ:
            self._steady += 1
            return
        if self.settled:
            self.lengthen()
        self._steady = 0

    def lengthen(self) -> None:
        """The present pause is too short: double it."""
        self._fell = True
        if self.hold:
            self.too_short_ms = max(self.too_short_ms, self.pause_ms)
            self.pause_ms = min(max(PAUSE_FIRST_MS, 2 * self.pause_ms), PAUSE_MAX_MS)

    @property
    def settled(self) -> bool:
        """Whether the clock has kept its place for a while at the present pause."""
        return self._steady >= SETTLED_AFTER

    @property
    def next_pause_ms(self) -> float:
        """Where the next window of the case begins: a little shorter, if this one held throughout."""
        if self._fell or not self.pause_ms:
            return self.pause_ms
        shorter = max(RELAX * self.pause_ms, MARGIN * self.too_short_ms)
        shorter = 0.0 if shorter < PAUSE_MIN_MS else min(self.pause_ms, shorter)
        return max(shorter, self._least_ms)
