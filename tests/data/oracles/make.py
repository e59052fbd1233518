"""Write steps.json: fixed series, and where two independent programs find steps in them.

Needs numpy, apache-otava and ruptures; see README.md beside it.
"""

from __future__ import annotations

import json
import math
from importlib.metadata import version
from pathlib import Path

import numpy as np
import ruptures
from otava.analysis import compute_change_points

SPREAD = 0.005  # of log values around their level
SERIES = (  # name, (points, level in per cent) of each segment, (index, per cent) of each spike
    ("no step", [(60, 0)], []),
    ("no step, long", [(200, 0)], []),
    ("slower in the middle", [(40, 0), (40, 3)], []),
    ("faster early", [(12, 0), (60, -4)], []),
    ("slower lately", [(60, 0), (5, 4)], []),
    ("there and back", [(30, 0), (20, 5), (30, 0)], []),
    ("up three stairs", [(25, 0), (25, 3), (25, 6), (25, 10)], []),
    ("a spike and no step", [(60, 0)], [(30, 15)]),
    ("a spike before a step", [(30, 0), (30, 4)], [(12, 12)]),
    ("a spike at the end", [(60, 0)], [(59, 15)]),
)


def values_of(segments, spikes, seed):
    """Durations in milliseconds around 0.25, to six digits."""
    rng = np.random.default_rng(seed)
    levels = np.concatenate([np.full(points, level) for points, level in segments]).astype(float)
    for index, per_cent in spikes:
        levels[index] += per_cent
    logs = np.log1p(levels / 100) + rng.normal(0, SPREAD, levels.size)
    return [float(f"{0.25 * math.exp(value):.6g}") for value in logs]


def by_otava(values):
    points, _ = compute_change_points(list(values), window_len=50, max_pvalue=0.001, min_magnitude=0.01)
    return [int(point.index) for point in points]


def by_ruptures(values):
    logs = np.log(values).reshape(-1, 1)
    penalty = 5.0  # the kernel is scaled by the median distance, so this does not depend on the data
    found = ruptures.KernelCPD(kernel="rbf", min_size=2).fit(logs).predict(pen=penalty)
    return [int(index) for index in found[:-1]]


series = []
for seed, (name, segments, spikes) in enumerate(SERIES):
    values = values_of(segments, spikes, seed)
    planted = [int(index) for index in np.cumsum([points for points, _ in segments])[:-1]]
    series.append(
        {
            "name": name,
            "planted": planted,
            "otava": by_otava(values),
            "ruptures": by_ruptures(values),
            "values_ms": values,
        }
    )
versions = {name: version(name) for name in ("apache-otava", "ruptures", "numpy")}
lines = ",\n".join(f"  {json.dumps(item)}" for item in series)
Path(__file__).with_name("steps.json").write_text(
    f'{{"versions": {json.dumps(versions)}, "series": [\n{lines}\n]}}\n', encoding="utf-8"
)
