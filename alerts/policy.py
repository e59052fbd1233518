"""What counts as a change: every threshold in one place, each with its why."""

from __future__ import annotations

import math
from dataclasses import dataclass

from store.folding import WINDOWS_MIN
from store.records import RecordInvalid, Tier

_RANK = {Tier.A: 0, Tier.B: 1, Tier.C: 2}


def reaches(tier: Tier, minimum: Tier) -> bool:
    """Whether ``tier`` can be trusted at least as far as ``minimum``."""
    return _RANK[tier] <= _RANK[minimum]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Thresholds of judging. The evidence behind them is in docs/decisions/0004-verdicts.md.

    Attributes:
        confirm_effect: the smallest relative change that can be confirmed. Below one per cent
            a real difference is seldom worth a person's time, and a run-to-run spread that was
            underestimated looks exactly like it. The timer's quantum can raise it.
        minimum_tier: the lowest tier that gets a verdict. A tier C number was taken while the
            machine moved or could not be watched, so a difference says nothing about the code.
        pool_size: runs in a baseline pool. Twenty give an interval that stays tight, and are
            recent enough to follow the code.
        pool_minimum: fewest runs that make a pool. Below six, order statistics give no 95 %
            interval, and the spread between runs is a guess.
        sentinel_effect: how far a sentinel has to move against a *single* run, or beside its
            own pair, before the machine is blamed. The spread between sessions is unknown in
            the one case, and a pair sees changes that are too small to matter in the other;
            against a pool, apart is enough.
        paired_p: the largest p-value of a paired effect that flags a change although the
            intervals of the two runs overlap, as they do where the machine drifts.
        reach_runs: how many runs on ancestors are searched for a baseline, newest first. It
            bounds the time a verdict takes in a store with years of history.
    """

    confirm_effect: float = 0.01
    minimum_tier: Tier = Tier.B
    pool_size: int = 20
    pool_minimum: int = WINDOWS_MIN
    sentinel_effect: float = 0.01
    paired_p: float = 0.001
    reach_runs: int = 400

    def __post_init__(self) -> None:
        if not WINDOWS_MIN <= self.pool_minimum <= self.pool_size:
            raise RecordInvalid(
                f"a pool of {self.pool_minimum} to {self.pool_size} runs: the minimum lies between "
                f"{WINDOWS_MIN} and the size"
            )
        for name in ("confirm_effect", "sentinel_effect"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise RecordInvalid(f"{name} is {value!r}: give a share such as 0.01")
        if not 0 < self.paired_p < 1:
            raise RecordInvalid(f"paired_p is {self.paired_p!r}: give a probability such as 0.001")
