"""Many pools at once come to what each comes to by itself, to the last digit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.comparing import pool_of, pools_of, reach, widened
from store.folding import fold_windows
from store.portable import exp, expm1, log, sqrt
from store.records import FoldStatus, Interval

DURATIONS = st.floats(min_value=1e-4, max_value=1e4)
ROWS = st.integers(6, 12).flatmap(
    lambda runs: st.lists(st.lists(DURATIONS, min_size=runs, max_size=runs), min_size=1)
)


@given(
    rows=st.integers(6, 12).flatmap(
        lambda n: st.lists(st.lists(DURATIONS, min_size=n, max_size=n), min_size=1)
    )
)
def test_a_pool_is_the_same_alone_and_among_others(rows: list[list[float]]) -> None:
    resolutions = np.array([1e-6 * (place + 1) for place in range(len(rows))])

    together = pools_of(log(np.array(rows)), resolution_ms=resolutions)

    for place, centers in enumerate(rows):
        alone = pool_of(centers, resolution_ms=float(resolutions[place]))
        bounds = (together.low[place], together.center[place], together.high[place])
        assert alone.interval.bounds == bounds
        assert (alone.run_sd, alone.run_df) == (together.run_sd[place], together.run_df)


@given(centers=st.lists(DURATIONS, min_size=6, max_size=30))
def test_a_pool_is_folded_as_windows_are(centers: list[float]) -> None:
    pool = pool_of(centers, resolution_ms=1e-6)

    assert pool.interval == fold_windows([(center,) for center in centers], resolution=1e-6)


def test_equal_centres_have_no_spread_whatever_their_logs_round_to() -> None:
    assert pool_of([0.1] * 7, resolution_ms=0.0).run_sd == 0.0


@given(centers=st.lists(DURATIONS, min_size=1), run_sd=st.floats(0, 0.5))
def test_the_reach_of_many_runs_is_what_each_is_widened_to(centers: list[float], run_sd: float) -> None:
    spread = np.full(len(centers), run_sd)
    resolution = np.full(len(centers), 1e-6)

    low, high = reach(np.array(centers), run_sd=spread, run_df=19, resolution_ms=resolution)

    for place, center in enumerate(centers):
        point = Interval(center, center, center, 8, FoldStatus.OK)
        alone = widened(point, run_sd=run_sd, run_df=19, resolution_ms=1e-6)
        assert (alone.low, alone.high) == (min(center, low[place]), max(center, high[place]))


@given(values=st.lists(st.floats(1e-6, 50), min_size=4, max_size=4))
def test_functions_of_arrays_give_what_the_standard_library_gives_for_each(values: list[float]) -> None:
    array = np.array(values).reshape(2, 2)

    for ours, theirs in ((log, math.log), (exp, math.exp), (expm1, math.expm1), (sqrt, math.sqrt)):
        assert ours(array).tolist() == [[theirs(value) for value in row] for row in array.tolist()]
        assert [ours(value) for value in values] == [theirs(value) for value in values]


@pytest.mark.parametrize("run_sd", [0.0, 0.002])
def test_the_highest_confidence_that_a_float_can_say_gives_an_interval_all_the_same(run_sd: float) -> None:
    almost_sure = math.nextafter(1.0, 0.0)
    point = Interval(center=0.25, low=0.249, high=0.251, windows=8, status=FoldStatus.OK)

    wide = widened(point, run_sd=run_sd, run_df=10, resolution_ms=1e-6, confidence=almost_sure)

    less_sure = widened(point, run_sd=run_sd, run_df=10, resolution_ms=1e-6, confidence=1 - 1e-12)
    assert wide.bounds is not None
    assert less_sure.bounds is not None
    assert wide.bounds[0] <= less_sure.bounds[0]
    low, high = reach(
        np.array([0.25]),
        run_sd=np.array([run_sd]),
        run_df=10,
        resolution_ms=np.array([1e-6]),
        confidence=almost_sure,
    )
    assert (min(0.249, low[0]), max(0.251, high[0])) == (wide.bounds[0], wide.bounds[2])
