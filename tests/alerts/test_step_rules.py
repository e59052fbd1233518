"""Rules that stand beside ours in the benches do what their authors say: a rival is no straw man."""

from __future__ import annotations

import random
import runpy
from pathlib import Path

RULES = runpy.run_path(str(Path(__file__).parents[1] / "bench/step_rules.py"))


def durations(*segments: tuple[int, float], seed: int = 1) -> tuple[float, ...]:
    rng = random.Random(seed)
    return tuple(level * (1 + rng.gauss(0, 0.005)) for points, level in segments for _ in range(points))


def test_asv_lists_a_step_up_that_is_still_there() -> None:
    assert RULES["asv_steps"](durations((40, 1.0), (30, 1.1)), threshold=0.05) == [40]


def test_asv_lists_no_step_below_its_threshold() -> None:
    series = durations((40, 1.0), (40, 1.03))

    assert RULES["asv_steps"](series, threshold=0.05) == []
    assert RULES["asv_steps"](series, threshold=0.01) == [40]


def test_asv_lists_no_step_that_was_taken_back() -> None:
    assert RULES["asv_steps"](durations((30, 1.0), (20, 1.2), (30, 1.0)), threshold=0.05) == []


def test_asv_overlooks_a_single_spike() -> None:
    assert RULES["asv_steps"](durations((30, 1.0), (1, 1.5), (30, 1.0)), threshold=0.05) == []


def test_asv_lists_every_stair() -> None:
    assert RULES["asv_steps"](durations((30, 1.0), (30, 1.1), (30, 1.25)), threshold=0.05) == [30, 60]


def test_asv_gives_noise_a_single_level() -> None:
    assert len(RULES["asv_pieces"](durations((60, 1.0)))) == 1


def test_the_fixed_rule_looks_at_the_point_before_and_no_further() -> None:
    assert RULES["fixed_steps"]([1.0, 1.01, 1.02, 1.05, 1.0, 1.03], share=0.02) == [3, 5]
