"""How often an interval holds the true median: a seeded simulation.

Ten kinds of noise, each with a known median of window medians; in E and F windows depend on
their neighbours, which no formula for independent windows can answer for. For several numbers
of windows it prints the share of intervals that hold it and their median relative width, for
the interval the store folds and for two that were rejected: Student's t over the logs of
the window medians, and the interval of the median over all samples at once.
docs/decisions/0002-folding.md cites the table.

    python tests/bench/bench_coverage.py [--windows 8] [--repeats N]
"""

from __future__ import annotations

import argparse
import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtrit

from store.folding import CONFIDENCE, fold_windows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

SEED = 0xC0FFEE
WINDOW_COUNTS = (3, 5, 8)
GOAL_WINDOWS = 8
SAMPLES = 31  # per window
REPEATS = 10_000  # simulated measurements a cell
TYPICAL_MS = 0.25
SLOW_STATE = math.log(1.08)  # how much slower the rarer state of scenario C is, in log units
SLOW_SHARE = 0.3
RARELY = 0.1  # share of slow windows in scenario D, and of disturbed ones in I
DISTURBED_MAX = 0.2  # the most that a disturbed window is slower
SKEWED = 0.02  # mean of the exponential levels of scenario G
NEIGHBOURS = 0.6  # correlation of a window with the one before, in scenario E
DRIFT, DRIFT_PERIOD = 0.02, 20  # of scenario F: log units, and windows
QUANTUM_MS, QUANTISED_MS = 0.0005, 0.01013  # of scenario H
HELD_AT_LEAST, HELD_AT_MOST = 93.0, 99.0  # goal, in percent, where windows are independent


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of noise.

    Attributes:
        levels: draws the log level of each window, around 0.
        within: standard deviation of log samples around the level of their window.
        true_median: of the distribution of window medians, in log units.
        typical_ms: the duration that log units are counted from.
        quantum_ms: what durations are rounded to, and the fold is told; 0 for not at all.
        independent: whether windows are independent draws, as the fold asks for.
    """

    name: str
    levels: Callable[[np.random.Generator, int], NDArray[np.float64]]
    within: float
    true_median: float = 0.0
    typical_ms: float = TYPICAL_MS
    quantum_ms: float = 0.0
    independent: bool = True


def normal_levels(spread: float) -> Callable[[np.random.Generator, int], NDArray[np.float64]]:
    """Window levels that differ by a normal spread."""
    return lambda rng, windows: rng.normal(0.0, spread, windows)


def two_states(share: float) -> Callable[[np.random.Generator, int], NDArray[np.float64]]:
    """Most windows at the usual level, this share slower, as with two memory layouts."""
    return lambda rng, windows: np.where(rng.random(windows) < share, SLOW_STATE, 0.0)


def skewed_levels(rng: np.random.Generator, windows: int) -> NDArray[np.float64]:
    """Windows that are slower by an exponential amount, counted from its median."""
    return rng.exponential(SKEWED, windows) - SKEWED * math.log(2)


def disturbed_levels(rng: np.random.Generator, windows: int) -> NDArray[np.float64]:
    """Windows that differ by 1 %, some of which something else slowed down."""
    slowed = np.where(rng.random(windows) < RARELY, rng.uniform(0.0, DISTURBED_MAX, windows), 0.0)
    return rng.normal(0.0, 0.01, windows) + np.log1p(slowed)


def neighbouring_levels(rng: np.random.Generator, windows: int) -> NDArray[np.float64]:
    """Windows that differ by 2 %, each like the one before it: a first-order autoregression."""
    levels = rng.normal(0.0, 0.02, windows)
    for index in range(1, windows):
        levels[index] = NEIGHBOURS * levels[index - 1] + math.sqrt(1 - NEIGHBOURS**2) * levels[index]
    return levels


def drifting_levels(rng: np.random.Generator, windows: int) -> NDArray[np.float64]:
    """A slow wave that begins anywhere."""
    phases = rng.uniform(0, DRIFT_PERIOD) + np.arange(windows)
    return DRIFT * np.sin(2 * math.pi * phases / DRIFT_PERIOD)


def median_of_two_states(share: float, within: float) -> float:
    """Median of the window medians that ``two_states`` gives, by bisection on their distribution."""
    error = within * math.sqrt(math.pi / 2 / SAMPLES)  # of the median of one window
    usual, slow = statistics.NormalDist(0.0, error), statistics.NormalDist(SLOW_STATE, error)
    return bisected(lambda x: (1 - share) * usual.cdf(x) + share * slow.cdf(x), 0.0, SLOW_STATE)


def median_of_disturbed() -> float:
    """Median of the levels that ``disturbed_levels`` gives; windows are as often above it as below."""
    usual = statistics.NormalDist(0.0, 0.01)
    slowed = [math.log1p(DISTURBED_MAX * (step + 0.5) / 1000) for step in range(1000)]

    def share_below(x: float) -> float:
        disturbed = statistics.fmean(usual.cdf(x - level) for level in slowed)
        return (1 - RARELY) * usual.cdf(x) + RARELY * disturbed

    return bisected(share_below, 0.0, SLOW_STATE)


def bisected(share_below: Callable[[float], float], low: float, high: float) -> float:
    """Where a distribution function passes one half."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if share_below(middle) < 0.5 else (low, middle)
    return (low + high) / 2


SCENARIOS = (
    Scenario("A: windows differ by 2 %, samples by 0.5 %", normal_levels(0.02), 0.005),
    Scenario("B: windows do not differ, samples do by 1 %", normal_levels(0.0), 0.01),
    Scenario(
        "C: three windows in ten are 8 % slower",
        two_states(SLOW_SHARE),
        0.005,
        median_of_two_states(SLOW_SHARE, 0.005),
    ),
    Scenario(
        "D: one window in ten is 8 % slower",
        two_states(RARELY),
        0.005,
        median_of_two_states(RARELY, 0.005),
    ),
    Scenario("E: each window is like the one before", neighbouring_levels, 0.005, independent=False),
    Scenario("F: windows drift slowly there and back", drifting_levels, 0.005, independent=False),
    Scenario("G: windows are slower by an exponential 2 %", skewed_levels, 0.005),
    Scenario(
        "H: all read the same ticks of a coarse timer",
        normal_levels(0.0),
        0.002,
        typical_ms=QUANTISED_MS,
        quantum_ms=QUANTUM_MS,
    ),
    Scenario("I: one window in ten is disturbed, up to 20 %", disturbed_levels, 0.005, median_of_disturbed()),
    Scenario("J: windows and samples differ by 0.5 %", normal_levels(0.005), 0.005),
)


def folded_interval(samples: NDArray[np.float64], quantum_ms: float) -> tuple[float, float]:
    """What kernelwatch stores and judges."""
    interval = fold_windows(samples.tolist(), resolution=quantum_ms)
    assert interval.low is not None  # three windows or more are never refused
    assert interval.high is not None
    return interval.low, interval.high


def log_t_interval(samples: NDArray[np.float64], _quantum_ms: float) -> tuple[float, float]:
    """Rejected: Student's t over the logs of the window medians."""
    logs = np.log(np.median(samples, axis=1))
    half = float(stdtrit(logs.size - 1, (1 + CONFIDENCE) / 2) * logs.std(ddof=1)) / math.sqrt(logs.size)
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def pooled_interval(samples: NDArray[np.float64], _quantum_ms: float) -> tuple[float, float]:
    """Rejected: the order statistics around the median of all samples, as if no window existed."""
    ordered = np.sort(samples, axis=None)
    half = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(ordered.size) / 2
    middle = ordered.size / 2
    return float(ordered[math.floor(middle - half)]), float(ordered[math.ceil(middle + half) - 1])


METHODS = {"folded": folded_interval, "log-t": log_t_interval, "pooled": pooled_interval}


def simulate(scenario: Scenario, windows: int, repeats: int) -> dict[str, tuple[float, float]]:
    """For each method: the percentage of intervals that hold the truth, and their width in percent."""
    rng = np.random.default_rng([SEED, ord(scenario.name[0]), windows])
    truth = scenario.typical_ms * math.exp(scenario.true_median)
    held = dict.fromkeys(METHODS, 0)
    widths: dict[str, list[float]] = {name: [] for name in METHODS}
    for _ in range(repeats):
        levels = scenario.levels(rng, windows)[:, np.newaxis]  # (windows, 1)
        samples = scenario.typical_ms * np.exp(rng.normal(levels, scenario.within, (windows, SAMPLES)))
        if scenario.quantum_ms:
            samples = np.round(samples / scenario.quantum_ms) * scenario.quantum_ms
        for name, interval in METHODS.items():
            low, high = interval(samples, scenario.quantum_ms)
            held[name] += low <= truth <= high
            widths[name].append((high - low) / truth)
    return {name: (100 * held[name] / repeats, 100 * statistics.median(widths[name])) for name in METHODS}


def table_row(scenario: Scenario, windows: int, cells: Mapping[str, tuple[float, float]]) -> str:
    """One row of the table, as the decision shows it."""
    shown = "".join(f" {share:.1f} % ({width:.2f} %) |" for share, width in cells.values())
    return f"| {scenario.name} | {windows} |{shown}"


def main() -> None:
    """Print the table as Markdown, and the goal for eight windows."""
    parser = argparse.ArgumentParser(description="Simulate how often an interval holds the true median.")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="simulated measurements a cell")
    parser.add_argument("--windows", type=int, nargs="+", default=WINDOW_COUNTS, help="numbers of windows")
    options = parser.parse_args()
    repeats: int = options.repeats
    error = 100 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
    print(f"{repeats} measurements a cell, {SAMPLES} samples a window, seed {SEED:#x}.")
    print(f"At 95 % one standard error is {error:.1f} percentage points.\n")
    print("| noise | windows |" + "".join(f" {name}: holds (width) |" for name in METHODS))
    print("|---|---|" + "---|" * len(METHODS))
    held: dict[str, float] = {}
    for scenario in SCENARIOS:
        for windows in options.windows:
            cells = simulate(scenario, windows, repeats)
            print(table_row(scenario, windows, cells), flush=True)
            if windows == GOAL_WINDOWS and scenario.independent:
                held[scenario.name] = cells["folded"][0]
    print_goal(held)


def print_goal(held: dict[str, float]) -> None:
    """How the shares that hold with independent windows lie to the goal."""
    if not held:
        return
    low, high = min(held.values()), max(held.values())
    goal = f"goal {HELD_AT_LEAST:.0f} to {HELD_AT_MOST:.0f} %"
    print(f"\nIndependent windows, {GOAL_WINDOWS} of them: {low:.1f} to {high:.1f} %, {goal}:")
    print(f"ratio of the lowest to the lower goal {low / HELD_AT_LEAST:.3f}")
    outside = {name: share for name, share in held.items() if not HELD_AT_LEAST <= share <= HELD_AT_MOST}
    for name, share in outside.items():
        print(f"outside: {name}: {share:.1f} %")


if __name__ == "__main__":
    main()
