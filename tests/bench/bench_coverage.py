"""How often an interval holds the true median: a seeded simulation.

Four kinds of noise, each with a known median of window medians. For several numbers of
windows it prints the share of intervals that hold it and their median relative width, for
the interval the store folds and for two that were rejected: Student's t over the logs of
the window medians, and the interval of the median over all samples at once.
docs/decisions/0002-folding.md cites the table.

    python tests/bench/bench_coverage.py
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
    from collections.abc import Callable

    from numpy.typing import NDArray

SEED = 0xC0FFEE
WINDOW_COUNTS = (3, 5, 8)
SAMPLES = 31  # per window
REPEATS = 10_000  # simulated measurements a cell
TYPICAL_MS = 0.25
SLOW_STATE = math.log(1.08)  # how much slower the rarer state of scenario C is, in log units
SLOW_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of noise.

    Attributes:
        levels: draws the log level of each window, around 0.
        within: standard deviation of log samples around the level of their window.
        true_median: of the distribution of window medians, in log units.
    """

    name: str
    levels: Callable[[np.random.Generator, int], NDArray[np.float64]]
    within: float
    true_median: float = 0.0


def normal_levels(spread: float) -> Callable[[np.random.Generator, int], NDArray[np.float64]]:
    """Window levels that differ by a normal spread."""
    return lambda rng, windows: rng.normal(0.0, spread, windows)


def two_states(rng: np.random.Generator, windows: int) -> NDArray[np.float64]:
    """Most windows at the usual level, some slower, as with two memory layouts."""
    return np.where(rng.random(windows) < SLOW_SHARE, SLOW_STATE, 0.0)


def median_of_two_states(within: float) -> float:
    """Median of the window medians that ``two_states`` gives, by bisection on their distribution."""
    error = within * math.sqrt(math.pi / 2 / SAMPLES)  # of the median of one window
    usual, slow = statistics.NormalDist(0.0, error), statistics.NormalDist(SLOW_STATE, error)
    low, high = 0.0, SLOW_STATE
    for _ in range(60):
        middle = (low + high) / 2
        below = (1 - SLOW_SHARE) * usual.cdf(middle) + SLOW_SHARE * slow.cdf(middle)
        low, high = (middle, high) if below < 0.5 else (low, middle)
    return (low + high) / 2


SCENARIOS = (
    Scenario("A: windows differ by 2 %, samples by 0.5 %", normal_levels(0.02), 0.005),
    Scenario("B: windows do not differ, samples do by 1 %", normal_levels(0.0), 0.01),
    Scenario("C: three windows in ten are 8 % slower", two_states, 0.005, median_of_two_states(0.005)),
    Scenario("J: windows and samples differ by 0.5 %", normal_levels(0.005), 0.005),
)


def folded_interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """What kernelwatch stores and judges."""
    interval = fold_windows(samples.tolist(), resolution=0.0)
    assert interval.low is not None  # three windows or more are never refused
    assert interval.high is not None
    return interval.low, interval.high


def log_t_interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Rejected: Student's t over the logs of the window medians."""
    logs = np.log(np.median(samples, axis=1))
    half = float(stdtrit(logs.size - 1, (1 + CONFIDENCE) / 2) * logs.std(ddof=1)) / math.sqrt(logs.size)
    return math.exp(logs.mean() - half), math.exp(logs.mean() + half)


def pooled_interval(samples: NDArray[np.float64]) -> tuple[float, float]:
    """Rejected: the order statistics around the median of all samples, as if no window existed."""
    ordered = np.sort(samples, axis=None)
    half = statistics.NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * math.sqrt(ordered.size) / 2
    middle = ordered.size / 2
    return float(ordered[math.floor(middle - half)]), float(ordered[math.ceil(middle + half) - 1])


METHODS = {"folded": folded_interval, "log-t": log_t_interval, "pooled": pooled_interval}


def simulate(scenario: Scenario, windows: int, repeats: int) -> dict[str, tuple[float, float]]:
    """For each method: the percentage of intervals that hold the truth, and their width in percent."""
    rng = np.random.default_rng([SEED, ord(scenario.name[0]), windows])
    truth = TYPICAL_MS * math.exp(scenario.true_median)
    held = dict.fromkeys(METHODS, 0)
    widths: dict[str, list[float]] = {name: [] for name in METHODS}
    for _ in range(repeats):
        levels = scenario.levels(rng, windows)[:, np.newaxis]  # (windows, 1)
        samples = TYPICAL_MS * np.exp(rng.normal(levels, scenario.within, (windows, SAMPLES)))
        for name, interval in METHODS.items():
            low, high = interval(samples)
            held[name] += low <= truth <= high
            widths[name].append((high - low) / truth)
    return {name: (100 * held[name] / repeats, 100 * statistics.median(widths[name])) for name in METHODS}


def table_row(scenario: Scenario, windows: int, repeats: int) -> str:
    """One row of the table, as the decision shows it."""
    cells = simulate(scenario, windows, repeats).values()
    shown = "".join(f" {share:.1f} % ({width:.2f} %) |" for share, width in cells)
    return f"| {scenario.name} | {windows} |{shown}"


def main() -> None:
    """Print the table as Markdown."""
    parser = argparse.ArgumentParser(description="Simulate how often an interval holds the true median.")
    parser.add_argument("--repeats", type=int, default=REPEATS, help="simulated measurements a cell")
    repeats: int = parser.parse_args().repeats
    error = 100 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / repeats)
    print(f"{repeats} measurements a cell, {SAMPLES} samples a window, seed {SEED:#x}.")
    print(f"At 95 % one standard error is {error:.1f} percentage points.\n")
    print("| noise | windows |" + "".join(f" {name}: holds (width) |" for name in METHODS))
    print("|---|---|" + "---|" * len(METHODS))
    for scenario in SCENARIOS:
        for windows in WINDOW_COUNTS:
            print(table_row(scenario, windows, repeats))


if __name__ == "__main__":
    main()
