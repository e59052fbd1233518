"""How often the same code is called slower, and a real step is seen: simulated with a fixed seed.

Two runs of the same code lie apart by as much as two windows of one run do (0.5 %).
The numbers in docs/decisions/0004-verdicts.md come from here.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace

from builders import a_point
from judgements import JUDGED_AT, POLICY

from alerts.baseline import form_baseline
from alerts.verdicts import judge_point
from store.folding import fold_windows
from store.records import Outcome, SeriesPoint

SPREAD = 0.005
REPEATS = 1000
TEMPLATE = a_point()


def simulated(rng: random.Random, *, level: float = 1.0) -> SeriesPoint:
    """One run of eight windows: a level of its own, and windows around it."""
    own = math.log(level) + rng.gauss(0, SPREAD)
    medians = tuple(math.exp(own + rng.gauss(0, SPREAD)) for _ in range(8))
    return replace(
        TEMPLATE,
        interval=fold_windows([[median] for median in medians], resolution=0.0),
        resolution_ms=0.0,
        window_medians_ms=medians,
    )


def share_called_slower(*, runs: int, level: float = 1.0) -> float:
    """Of many independent comparisons with ``runs`` baseline runs, the share that is flagged as slower."""
    rng, flagged = random.Random(f"{runs}-{level}"), 0
    for _ in range(REPEATS):
        baseline = form_baseline([simulated(rng) for _ in range(runs)], POLICY)
        assert baseline is not None
        candidate = simulated(rng, level=level)
        verdict = judge_point(candidate, baseline, POLICY, judged_at=JUDGED_AT)
        flagged += verdict.outcome is Outcome.REGRESSED
    return flagged / REPEATS


def test_a_pool_calls_the_same_code_slower_in_one_run_in_a_hundred() -> None:
    assert share_called_slower(runs=20) < 0.02


def test_a_single_run_calls_the_same_code_slower_far_more_often() -> None:
    """The reason why a single baseline run confirms nothing."""
    assert share_called_slower(runs=1) > 0.08


def test_a_pool_sees_a_step_of_three_per_cent() -> None:
    assert share_called_slower(runs=20, level=1.03) > 0.95


def test_the_smallest_pool_keeps_its_word_too() -> None:
    assert share_called_slower(runs=6) < 0.02
