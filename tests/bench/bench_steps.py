"""How often a search for steps finds one where there is none, and how soon it finds a real one.

Simulated with a fixed seed, by the kind of noise between runs; no smallest size is asked for. Where
apache-otava is installed (see tests/data/oracles/README.md) it stands beside, with its defaults.
docs/decisions/0007-change-points.md cites the tables. Takes about two minutes.

    python tests/bench/bench_steps.py [--repeats N]
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from step_rules import OTAVA

from alerts.steps import StepRule, find_steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Noise = Callable[[np.random.Generator, int], NDArray[np.float64]]

SEED = 0xC0FFEE
SPREAD = 0.005
LENGTHS = (20, 60, 200, 500)
BEFORE = 45  # points on the old level
AFTER = (1, 2, 3, 5, 8)
OTAVA_REPEATS = 100  # it needs up to half a second for a series


def correlated(rho: float) -> Noise:
    """Each run remembers the one before: the machine drifts."""

    def draw(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
        values = rng.normal(0, SPREAD, n)
        for index in range(1, n):
            values[index] += rho * values[index - 1]
        return values

    return draw


def with_spikes(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """One run in twenty goes wrong by up to 20 %."""
    return rng.normal(0, SPREAD, n) + rng.uniform(0, 0.2, n) * (rng.random(n) < 0.05)


def two_states(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """One run in ten is 8 % slower, and each state is steady to 0.1 %."""
    return rng.normal(0, 0.001, n) + 0.08 * (rng.random(n) < 0.1)


NOISES: dict[str, Noise] = {
    "normal": lambda rng, n: rng.normal(0, SPREAD, n),
    "Student's t, 5 degrees": lambda rng, n: SPREAD * rng.standard_t(5, n),
    "Student's t, 3 degrees": lambda rng, n: SPREAD * rng.standard_t(3, n),
    "exponential": lambda rng, n: rng.exponential(SPREAD, n),
    "twice the spread in the second half": lambda rng, n: (
        rng.normal(0, SPREAD, n) * np.where(np.arange(n) < n // 2, 1, 2)
    ),
    "5 % spikes": with_spikes,
    "two states, 10 % slower": two_states,
    "correlated, 0.3": correlated(0.3),
    "correlated, 0.6": correlated(0.6),
}


def ours(logs: NDArray[np.float64]) -> list[int]:
    """First points after the steps that we find."""
    return [step.position for step in find_steps(logs.tolist(), rule=StepRule(minimum_size=0.0))]


def otavas(logs: NDArray[np.float64]) -> list[int]:
    """First points after the steps that apache-otava finds."""
    compute = importlib.import_module("otava.analysis").compute_change_points
    return [int(point.index) for point in compute(np.exp(logs).tolist())[0]]


def print_false(name: str, find: Callable[[NDArray[np.float64]], list[int]], repeats: int) -> None:
    """Share of series without a step in which one is found."""
    print(f"\n{name}: series without a step in which one is found, {repeats} series a cell.\n")
    print("| noise between runs | " + " | ".join(f"{n} points" for n in LENGTHS) + " |")
    print("|---" * (len(LENGTHS) + 1) + "|")
    for place, (noise, draw) in enumerate(NOISES.items()):
        cells = []
        for n in LENGTHS:
            rng = np.random.default_rng([SEED, place, n])
            cells.append(f"{100 * sum(bool(find(draw(rng, n))) for _ in range(repeats)) / repeats:.1f} %")
        print(f"| {noise} | " + " | ".join(cells) + " |", flush=True)


def print_seen(name: str, find: Callable[[NDArray[np.float64]], list[int]], repeats: int) -> None:
    """Share of steps that are found within one point of their place."""
    print(f"\n{name}: steps found within one point, by points after it; {BEFORE} before, {repeats} a cell.\n")
    print("| step in spreads | " + " | ".join(map(str, AFTER)) + " |")
    print("|---" * (len(AFTER) + 1) + "|")
    for spreads in (2, 3, 5):
        cells = []
        for after in AFTER:
            rng = np.random.default_rng([SEED, spreads, after])
            hits = 0
            for _ in range(repeats):
                logs = rng.normal(0, SPREAD, BEFORE + after)
                logs[BEFORE:] += spreads * SPREAD
                hits += any(abs(position - BEFORE) <= 1 for position in find(logs))
            cells.append(f"{100 * hits / repeats:.0f} %")
        print(f"| {spreads} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Print the tables as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=1000, help="series a cell [1000]")
    repeats = parser.parse_args().repeats
    print_false("ours", ours, repeats)
    print_seen("ours", ours, repeats)
    if OTAVA:
        print_false("apache-otava", otavas, OTAVA_REPEATS)
        print_seen("apache-otava", otavas, OTAVA_REPEATS)


if __name__ == "__main__":
    main()
