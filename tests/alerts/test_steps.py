"""Steps are found where they are, spikes and noise are not, and the false ones are counted."""

from __future__ import annotations

import json
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.steps import Step, StepRule, find_steps
from store.records import RecordInvalid

ORACLES = json.loads((Path(__file__).parents[1] / "data/oracles/steps.json").read_text(encoding="utf-8"))
SERIES = {item["name"]: item for item in ORACLES["series"]}
SPREAD = 0.005
ANY_SIZE = StepRule(minimum_size=0.0)


def noisy(*segments: tuple[int, float], seed: int = 0, spread: float = SPREAD) -> list[float]:
    """Log values: (points, level) one after the other, with normal noise."""
    rng = random.Random(seed)
    return [level + rng.gauss(0, spread) for points, level in segments for _ in range(points)]


def positions(steps: list[Step]) -> list[int]:
    return [step.position for step in steps]


def logs_of(item: dict[str, Any]) -> list[float]:
    return [math.log(value) for value in item["values_ms"]]


# --- what is found -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERIES)
def test_planted_steps_are_found_within_one_point_and_no_others(name: str) -> None:
    found = positions(find_steps(logs_of(SERIES[name])))

    assert len(found) == len(SERIES[name]["planted"])
    assert all(abs(a - b) <= 1 for a, b in zip(found, SERIES[name]["planted"], strict=True))


@pytest.mark.parametrize("oracle", ["otava", "ruptures"])
@pytest.mark.parametrize("name", [name for name in SERIES if name != "a spike at the end"])
def test_independent_programs_find_the_same_steps(name: str, oracle: str) -> None:
    found = positions(find_steps(logs_of(SERIES[name])))

    assert len(found) == len(SERIES[name][oracle])
    assert all(abs(a - b) <= 1 for a, b in zip(found, SERIES[name][oracle], strict=True))


def test_a_spike_at_the_end_is_no_step_although_otava_says_so() -> None:
    item = SERIES["a spike at the end"]

    assert item["otava"] == [59]
    assert find_steps(logs_of(item)) == []


def test_size_and_interval_tell_the_planted_change() -> None:
    (step,) = find_steps(noisy((40, 0.0), (40, math.log(1.03))))

    assert step.size_low < 0.03 < step.size_high
    assert step.size_high - step.size_low < 0.01
    assert step.p_value < 1e-9


def test_a_speed_up_has_a_negative_size() -> None:
    (step,) = find_steps(noisy((40, 0.0), (40, math.log(0.95))))

    assert step.size == pytest.approx(-0.05, abs=0.005)


def test_two_points_after_a_large_step_are_enough_and_one_is_not() -> None:
    logs = noisy((45, 0.0), (2, 10 * SPREAD))

    assert positions(find_steps(logs)) == [45]
    assert find_steps(logs[:-1]) == []


def test_a_small_step_hidden_between_large_ones_is_found() -> None:
    """Seen over all points at once, the large steps there and back bury it."""
    logs = noisy((30, 0.0), (30, 0.3), (30, 0.32), (30, 0.0))

    assert positions(find_steps(logs)) == [30, 60, 90]


def test_a_noiseless_step_is_found_at_its_place() -> None:
    (step,) = find_steps([0.0] * 7 + [0.1] * 5)

    assert step.position == 7
    assert step.size_low == pytest.approx(step.size, abs=1e-5)


def test_where_a_spike_stands_at_a_step_both_sides_of_it_are_named() -> None:
    (step,) = find_steps([*noisy((30, 0.0)), 0.5, *noisy((30, 0.05), seed=1)])

    assert (step.last_before, step.position) == (29, 31)


# --- what is not -------------------------------------------------------------------------------


@pytest.mark.parametrize("logs", [[], [0.0], [0.0, 1.0, 1.0], [0.25] * 100])
def test_nothing_is_found_where_nothing_can_be_known_or_nothing_varies(logs: list[float]) -> None:
    assert find_steps(logs) == []


def test_steps_below_the_smallest_size_are_not_reported() -> None:
    logs = noisy((50, 0.0), (50, 0.01), spread=0.0005)

    assert positions(find_steps(logs)) == [50]
    assert find_steps(logs, rule=StepRule(minimum_size=0.02)) == []


def test_one_tick_of_the_timer_is_no_step() -> None:
    """Without any spread around it, a tick would otherwise be beyond all doubt."""
    logs = [math.log(ticks) for ticks in [100] * 30 + [101] * 30]

    assert positions(find_steps(logs)) == [30]
    assert find_steps(logs, quantum=0.01) == []


def test_the_quantum_widens_the_interval_by_itself_on_either_side() -> None:
    logs = noisy((40, 0.0), (40, 0.1))
    (without,), (with_quantum,) = find_steps(logs), find_steps(logs, quantum=0.001)

    assert with_quantum.size_low == pytest.approx(without.size_low - 0.0011, abs=1e-4)
    assert with_quantum.size_high == pytest.approx(without.size_high + 0.0011, abs=1e-4)


def test_two_wrong_runs_in_a_row_are_no_step_where_one_in_ten_goes_wrong() -> None:
    logs = noisy((60, 0.0), spread=0.001)
    for index in (5, 14, 26, 33, 47):
        logs[index] = 0.08
    twice = [*logs[:40], 0.08, 0.08, *logs[40:]]
    longer = [*logs[:40], *[0.08] * 8, *logs[40:]]

    assert find_steps(twice) == []
    assert positions(find_steps(longer)) == [40, 48]


def test_runs_that_go_wrong_more_often_in_one_half_are_no_step() -> None:
    """The means of the halves differ; the level, which is what most runs show, does not."""
    rng = random.Random(3)
    logs = [rng.gauss(0, 0.001) + 0.05 * (i >= 60 and rng.random() < 0.35) for i in range(120)]

    assert find_steps(logs) == []


# --- laws --------------------------------------------------------------------------------------

a_series = st.builds(
    noisy,
    st.tuples(st.integers(5, 40), st.just(0.0)),
    st.tuples(st.integers(5, 40), st.floats(-0.1, 0.1)),
    st.tuples(st.integers(5, 40), st.floats(-0.1, 0.1)),
    seed=st.integers(0, 10**6),
)
laws = settings(max_examples=40, deadline=None, database=None)


@laws
@given(a_series, st.floats(-8, 8))
def test_another_unit_changes_nothing(logs: list[float], shift: float) -> None:
    """Scaling durations shifts their logs."""
    here, there = find_steps(logs), find_steps([value + shift for value in logs])

    assert positions(here) == positions(there)
    assert [step.size for step in here] == pytest.approx([step.size for step in there], rel=1e-6)


@laws
@given(a_series, st.floats(0.1, 10))
def test_noise_and_steps_that_grow_together_give_the_same_steps(logs: list[float], factor: float) -> None:
    stretched = [factor * value for value in logs]

    assert positions(find_steps(logs, rule=ANY_SIZE)) == positions(find_steps(stretched, rule=ANY_SIZE))


@laws
@given(a_series)
def test_a_reversed_series_has_the_same_steps_backwards(logs: list[float]) -> None:
    forwards, backwards = find_steps(logs), find_steps(logs[::-1])

    mirrored = [len(logs) - step.last_before - 1 for step in reversed(backwards)]
    assert positions(forwards) == mirrored
    assert [step.p_value for step in forwards] == pytest.approx(
        [step.p_value for step in reversed(backwards)], rel=1e-6
    )


@laws
@given(a_series, st.floats(0, 1), st.sampled_from([-1.0, 1.0]))
def test_a_single_spike_anywhere_changes_no_step(logs: list[float], where: float, spike: float) -> None:
    place = round(where * len(logs))
    spiked = [*logs[:place], spike, *logs[place:]]

    without = find_steps(logs)
    # After one spike, two points in a row are no proof any more: they have to be of more.
    ends = [0, *positions(without), len(logs)]
    if min(after - before for before, after in pairwise(ends)) < 5:
        return
    found = find_steps(spiked)
    assert [step.position - (step.position > place) for step in found] == positions(without)
    assert [step.size for step in found] == pytest.approx([step.size for step in without])


# --- how often ---------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [20, 60, 200, 500])
def test_fewer_than_one_series_in_a_hundred_without_a_step_shows_one(points: int) -> None:
    rng = np.random.default_rng([0xC0FFEE, points])

    false = sum(bool(find_steps(row, rule=ANY_SIZE)) for row in rng.normal(0, SPREAD, (300, points)).tolist())

    assert false <= 3


@pytest.mark.parametrize(
    ("spreads", "after", "at_least"),
    [(2, 8, 0.5), (3, 3, 0.5), (3, 5, 0.85), (5, 2, 0.9), (5, 3, 0.99)],
)
def test_a_step_is_seen_within_a_few_points(spreads: int, after: int, at_least: float) -> None:
    """After 45 points on the old level, within one point of the right place."""
    rng = np.random.default_rng([0xC0FFEE, spreads, after])
    seen = 0
    for _ in range(200):
        logs = rng.normal(0, SPREAD, 45 + after)
        logs[45:] += spreads * SPREAD
        seen += any(abs(step.position - 45) <= 1 for step in find_steps(logs.tolist(), rule=ANY_SIZE))

    assert seen / 200 >= at_least


def test_the_interval_holds_the_true_size_nineteen_times_in_twenty() -> None:
    held = 0
    for seed in range(200):
        (step,) = find_steps(noisy((30, 0.0), (15, 0.05), seed=seed))
        held += step.size_low <= math.expm1(0.05) <= step.size_high

    assert 0.9 <= held / 200 <= 0.99


# --- what is refused ---------------------------------------------------------------------------


def test_a_value_that_is_no_number_is_refused_with_its_place() -> None:
    with pytest.raises(RecordInvalid, match="point 2 of the series is nan"):
        find_steps([0.0, 0.0, math.nan])


@pytest.mark.parametrize("quantum", [-0.1, math.inf])
def test_an_impossible_quantum_is_refused(quantum: float) -> None:
    with pytest.raises(RecordInvalid, match="resolution / centre"):
        find_steps([0.0] * 10, quantum=quantum)


@pytest.mark.parametrize(
    "changes", [{"level": 0.0}, {"minimum_size": -0.1}, {"minimum_segment": 1}, {"minimum_size": math.nan}]
)
def test_an_impossible_rule_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(RecordInvalid):
        StepRule(**changes)
