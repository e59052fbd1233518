"""Whether the machine slept: a GPU may come back from a suspend slower, or not at all."""

from __future__ import annotations

import time

TOLERANCE_S = 0.1  # the two clocks are not read at one instant


def slept_s() -> float:
    """Seconds this machine has spent suspended since it booted (Linux)."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.clock_gettime(time.CLOCK_MONOTONIC)


def why_invalid(before_s: float) -> str | None:
    """Why what was measured since then must not count, or None.

    Args:
        before_s: what ``slept_s`` gave then.
    """
    slept = slept_s() - before_s
    if slept <= TOLERANCE_S:
        return None
    return (
        f"the machine was suspended for {slept:.1f} s during the run, and a GPU may come back slower: "
        "measure again"
    )
