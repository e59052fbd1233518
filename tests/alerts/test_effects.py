"""Effects and q-values: known answers, and what happens when nothing varies."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from alerts.effects import (
    benjamini_hochberg,
    effect_against_pool,
    effect_between_windows,
    effects_against_pools,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "intervals.json").read_text(encoding="utf-8")
)
DATASETS = {dataset["id"]: dataset for dataset in VECTORS["datasets"]}
PAIRS = [pair for pair in VECTORS["pairs"] if "effect" in pair]
TOLERANCE = VECTORS["tolerance_relative"]


def medians(windows: list[list[float]]) -> list[float]:
    return [statistics.median(window) for window in windows]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda p: f"{p['baseline']}-x{p['candidate_scale']}")
def test_every_known_pair_has_its_known_effect(pair: dict[str, Any]) -> None:
    dataset, expected = DATASETS[pair["baseline"]], pair["effect"]

    effect = effect_between_windows(
        medians(dataset["windows"]), medians(pair["candidate_windows"]), quantum_ms=dataset["resolution"]
    )

    assert 1 + effect.relative == pytest.approx(expected["ratio"], rel=TOLERANCE)
    assert 1 + effect.low == pytest.approx(expected["lo"], rel=TOLERANCE)
    assert 1 + effect.high == pytest.approx(expected["hi"], rel=TOLERANCE)
    if expected["p"] is None:
        assert effect.p_value is None
    else:
        assert effect.p_value == pytest.approx(expected["p"], rel=TOLERANCE, abs=0)


def test_the_known_p_values_have_their_known_q_values() -> None:
    assert benjamini_hochberg(VECTORS["bh"]["p"]) == pytest.approx(VECTORS["bh"]["q"], rel=TOLERANCE, abs=0)


def test_no_p_values_have_no_q_values() -> None:
    assert benjamini_hochberg([]) == []


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=1, max_size=40))
def test_q_values_are_those_of_scipy(p_values: list[float]) -> None:
    expected = stats.false_discovery_control(p_values, method="bh")

    assert benjamini_hochberg(p_values) == pytest.approx(list(expected), rel=1e-12, abs=1e-300)


@given(
    baseline=st.lists(st.floats(min_value=0.9, max_value=1.1), min_size=3, max_size=12),
    candidate=st.lists(st.floats(min_value=0.9, max_value=1.1), min_size=3, max_size=12),
)
def test_swapping_the_sides_turns_the_effect_round(baseline: list[float], candidate: list[float]) -> None:
    there = effect_between_windows(baseline, candidate, quantum_ms=0.001)
    back = effect_between_windows(candidate, baseline, quantum_ms=0.001)

    assert (1 + there.relative) * (1 + back.relative) == pytest.approx(1)
    assert (1 + there.low) * (1 + back.high) == pytest.approx(1)
    if there.p_value is None:
        assert back.p_value is None
    else:
        assert there.p_value == pytest.approx(back.p_value, rel=1e-6)


def test_two_runs_without_any_spread_have_an_effect_as_wide_as_the_quantum_and_no_p() -> None:
    effect = effect_between_windows([10.0] * 8, [10.5] * 8, quantum_ms=0.5)

    assert effect.p_value is None
    assert effect.relative == pytest.approx(0.05)
    assert effect.low < 0.05 - 0.04 < 0.05 + 0.04 < effect.high


def test_spread_on_one_side_alone_is_enough_for_a_p_value() -> None:
    effect = effect_between_windows([1.0] * 8, [1.01, 1.02, 1.03, 1.01, 1.02, 1.03], quantum_ms=0.0)

    assert effect.p_value is not None
    assert effect.p_value < 0.01


def test_a_pool_gives_the_interval_for_one_more_run() -> None:
    effect = effect_against_pool(baseline_ms=1.0, candidate_ms=1.02, run_sd=0.005, runs=20, quantum_ms=0.0)

    half = stats.t.ppf(0.975, 19) * 0.005 * math.sqrt(1 + 1 / 20)
    assert effect.relative == pytest.approx(0.02)
    assert effect.low == pytest.approx(1.02 * math.exp(-half) - 1)
    assert effect.high == pytest.approx(1.02 * math.exp(half) - 1)
    assert effect.p_value == pytest.approx(2 * stats.t.sf(math.log(1.02) / 0.005 / math.sqrt(1.05), 19))


def test_a_pool_whose_runs_all_agree_gives_no_p_value() -> None:
    effect = effect_against_pool(baseline_ms=1.0, candidate_ms=1.02, run_sd=0.0, runs=20, quantum_ms=0.001)

    assert effect.p_value is None
    assert effect.low < effect.relative < effect.high


def test_many_effects_at_once_are_those_of_each_to_the_last_digit() -> None:
    rng = np.random.default_rng(7)
    baseline, candidate = rng.uniform(0.1, 9, 40), rng.uniform(0.1, 9, 40)
    run_sd, quantum = np.append(rng.uniform(1e-4, 0.1, 39), 0.0), rng.uniform(0, 1e-3, 40)

    together = effects_against_pools(
        baseline_ms=baseline, candidate_ms=candidate, run_sd=run_sd, runs=20, quantum_ms=quantum, run_df=39
    )

    for place, found in enumerate(zip(*together, strict=True)):
        alone = effect_against_pool(
            baseline_ms=baseline[place],
            candidate_ms=candidate[place],
            run_sd=run_sd[place],
            runs=20,
            quantum_ms=quantum[place],
            run_df=39,
        )
        p_value = math.nan if alone.p_value is None else alone.p_value
        np.testing.assert_array_equal(found, (alone.relative, alone.low, alone.high, p_value))
