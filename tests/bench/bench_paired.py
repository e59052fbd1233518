"""How often each rule for paired runs flags the same code, and sees a planted slowdown.

Two paired runs of the same code are put together from windows that an H200 recorded: the 16
windows a case has in ``tests/data/h200`` are brought to one centre and dealt out to eight passes
of two sides. A slowdown is planted by scaling one side, a drift by scaling both sides pass by
pass. The tables of docs/decisions/0006-paired-runs.md come from here.

    python tests/bench/bench_paired.py [--repeats N]
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from alerts.pairs import Pairs
from alerts.policy import Policy
from store.bundle import read_bundle
from store.comparing import compare_intervals
from store.folding import fold_windows
from store.records import Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path(__file__).parents[1] / "data" / "h200"
PASSES = 8
SCENES = (  # (slowdown of the candidate, drift from pass to pass)
    (0.0, 0.0), (0.0, 0.002), (0.005, 0.0), (0.01, 0.0), (0.01, 0.001), (0.01, 0.002), (0.01, 0.004),
)  # fmt: skip
RULES = (
    "intervals apart",
    "ratio excludes 1",
    "both",
    f"p <= {Policy().paired_p}",
    "as decided",
)

Windows = list[list[float]]


def recorded() -> dict[str, tuple[Windows, float]]:
    """By case: sixteen windows of two runs of the same code, and the timer's quantum."""
    first, second = (read_bundle(FOLDER / name) for name in ("first.kwrun", "second.kwrun"))
    found = {}
    for one in first.measurements:
        other = next(m for m in second.measurements if m.case == one.case)
        centers = [m.interval.center or math.nan for m in (one, other)]
        found[one.case.label] = (
            [
                [sample * centers[0] / center for sample in window.kept_ms]
                for measurement, center in zip((one, other), centers, strict=True)
                for window in measurement.counted_windows
            ],
            one.resolution_ms,
        )
    return found


def drifted(windows: Windows, drift: float, scale: float) -> Windows:
    """The windows of one side, pass by pass on a machine that becomes slower."""
    return [
        [sample * scale * math.exp(drift * index) for sample in window]
        for index, window in enumerate(windows)
    ]


def rules(baseline: Windows, candidate: Windows, resolution_ms: float) -> Sequence[bool]:
    """Which of the rules flag this pair, in the order of ``RULES``."""
    policy = Policy()
    apart = compare_intervals(
        fold_windows(candidate, resolution=resolution_ms), fold_windows(baseline, resolution=resolution_ms)
    )
    medians = zip(map(statistics.median, baseline), map(statistics.median, candidate), strict=True)
    pairs = Pairs(pairs=tuple(medians), quantum_ms=resolution_ms)
    effect = pairs.effect
    is_apart, excludes = apart is not Outcome.UNCHANGED, not effect.low <= 0 <= effect.high
    return (
        is_apart,
        excludes,
        is_apart and excludes,
        effect.p_value is not None and effect.p_value <= policy.paired_p,
        pairs.outcome(apart, p_limit=policy.paired_p) is not Outcome.UNCHANGED,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=100, help="pairs of runs per case and row [100]")
    repeats = parser.parse_args().repeats
    cases = recorded()
    print(f"{len(cases)} cases x {repeats} pairs of runs a row; share that each rule flags")
    print("| slower by | drift a pass | " + " | ".join(RULES) + " |")
    for slowdown, drift in SCENES:
        rng, flagged = random.Random(f"{slowdown}/{drift}"), Counter[str]()
        for windows, resolution_ms in cases.values():
            for _ in range(repeats):
                dealt = rng.sample(windows, 2 * PASSES)
                sides = drifted(dealt[:PASSES], drift, 1.0), drifted(dealt[PASSES:], drift, 1 + slowdown)
                flagged.update(
                    name for name, flag in zip(RULES, rules(*sides, resolution_ms), strict=True) if flag
                )
        shares = [f"{flagged[name] / repeats / len(cases):.2%}" for name in RULES]
        print(f"| {slowdown:.1%} | {drift:.1%} | " + " | ".join(shares) + " |")


if __name__ == "__main__":
    main()
