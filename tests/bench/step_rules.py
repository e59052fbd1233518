"""Rules of other tools, to put beside ours on the same series. Each gives the upward steps it reports.

Written from what their authors published:

- asv (airspeed velocity), "Step detection" in its documentation, after Friedrich et al. 2008 and
  Yao 1988: pieces of equal level that minimise ``gamma * pieces + sum |y - level|``, with the gamma
  that minimises ``4 ln n / n * pieces + ln(sigma_0 + sum |e_i - rho e_(i-1)|)`` over gamma and rho.
- apache-otava with its defaults, where it is installed. It wants a numpy of its own: see
  tests/data/oracles/README.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from bisect import insort
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

OTAVA = importlib.util.find_spec("otava") is not None
_ASV_SHORTEST = 2  # commits a piece must last before a step counts
_GAMMAS = 14  # tried between 0.1 / n and 1, in shares of the cost of a single piece
_RHOS = np.linspace(-0.9, 0.9, 19)


@dataclass(frozen=True, slots=True)
class Piece:
    """Points ``start`` to ``stop`` at one level; ``error`` is their mean distance from it."""

    start: int
    stop: int
    level: float
    error: float


def asv_steps(durations: tuple[float, ...], *, threshold: float) -> list[int]:
    """First points of the regressions that asv would list: those that are still there at the end.

    A regression is a step up from a level below everything that follows, by more than the
    errors of both sides and more than ``threshold`` (0.05 unless a project says otherwise).
    """
    found: list[int] = []
    after: Piece | None = None
    for piece in reversed(asv_pieces(durations)):
        if piece.stop - piece.start < _ASV_SHORTEST and after is not None:
            continue
        if after is None:
            after = piece
        elif after.level - piece.level > max(after.error, piece.error, threshold * piece.level):
            found.append(piece.stop)
            after = piece
        elif piece.level < after.level:
            after = piece
    return found[::-1]


@lru_cache(maxsize=1)  # the same for every threshold
def asv_pieces(durations: tuple[float, ...]) -> tuple[Piece, ...]:
    """The pieces of equal level that asv would draw."""
    y = np.asarray(durations, dtype=np.float64)
    n = y.size
    costs = _costs(y)
    whole = float(costs[0, n]) or 1.0
    best, best_score = [0, n], math.inf
    for gamma in whole * np.geomspace(0.1 / n, 1.0, _GAMMAS):
        ends = _optimal_ends(costs, float(gamma))
        score = 4 * math.log(n) / n * (len(ends) - 1) + math.log(_misfit(y, ends))
        if score < best_score:
            best, best_score = ends, score
    return tuple(
        Piece(a, b, float(np.median(y[a:b])), float(costs[a, b]) / (b - a)) for a, b in pairwise(best)
    )


def _costs(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """``costs[a, b]``: sum of distances of the points a to b from their median; infinite where b <= a."""
    n = y.size
    costs = np.full((n, n + 1), math.inf)
    for start in range(n):
        ordered: list[float] = []
        cost = 0.0
        for stop, value in enumerate(y[start:].tolist(), start=start + 1):
            if ordered:  # one more point adds its distance from the median, or the nearer of the middle two
                low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
                cost += max(low - value, value - high, 0.0)
            insort(ordered, value)
            costs[start, stop] = cost
    return costs


def _optimal_ends(costs: NDArray[np.float64], gamma: float) -> list[int]:
    """Ends of the pieces that minimise their cost plus ``gamma`` for each: dynamic programming."""
    n = costs.shape[0]
    best = np.zeros(n + 1)
    origin = np.zeros(n + 1, dtype=np.intp)
    for stop in range(1, n + 1):
        totals = best[:stop] + costs[:stop, stop] + gamma
        origin[stop] = int(np.argmin(totals))
        best[stop] = totals[origin[stop]]
    ends = [n]
    while ends[-1] > 0:
        ends.append(int(origin[ends[-1]]))
    return ends[::-1]


def _misfit(y: NDArray[np.float64], ends: Sequence[int]) -> float:
    """Sum of the errors that neighbours do not explain, and the floor below which none is believed."""
    levels = [float(np.median(y[a:b])) for a, b in pairwise(ends)]
    errors = y - np.repeat(levels, np.diff(ends))
    unexplained = np.abs(errors[1:] - _RHOS[:, np.newaxis] * errors[:-1]).sum(axis=1).min()
    floor = 0.1 * min(abs(b - a) for a, b in pairwise(levels)) if len(levels) > 1 else 0.001 * levels[0]
    return float(abs(errors[0]) + unexplained + max(floor, 1e-300))


def otava_steps(durations: Sequence[float]) -> list[int]:
    """First points of the upward change points that apache-otava reports, window 50, p 0.001."""
    compute = importlib.import_module("otava.analysis").compute_change_points
    points, _ = compute(list(durations))
    return [int(point.index) for point in points if point.stats.mean_2 > point.stats.mean_1]


def fixed_steps(durations: Sequence[float], *, share: float) -> list[int]:
    """Every point that is slower than the one before it by more than ``share``."""
    return [index + 1 for index, (a, b) in enumerate(pairwise(durations)) if b > a * (1 + share)]
