"""The seeded bootstrap and the percentiles of one window, against known values."""

from __future__ import annotations

import random
from statistics import median

import numpy as np
import pytest

from collector.instrument.bootstrap import RESAMPLES, SEED, median_interval, percentile, ratio_interval

TEN = (0.1915, 0.1946, 0.1920, 0.1925, 0.1930, 0.1922, 0.1919, 0.1941, 0.1925, 0.1923)


def noise(centre: float, n: int = 50, seed: int = 1) -> list[float]:
    rng = random.Random(seed)
    return [centre * (1 + rng.gauss(0, 0.01)) for _ in range(n)]


def test_the_interval_is_that_of_two_thousand_draws_of_python_s_generator_seeded_coffee() -> None:
    rng = random.Random(0xC0FFEE)
    medians = sorted(median(rng.choices(TEN, k=10)) for _ in range(2000))

    assert (SEED, RESAMPLES) == (0xC0FFEE, 2000)
    assert median_interval(TEN) == (medians[50], medians[1950])


def test_the_interval_of_ten_samples_is_known() -> None:
    assert median_interval(TEN) == (0.19195, 0.1933)


def test_the_interval_of_a_ratio_is_known() -> None:
    assert ratio_interval(TEN, noise(0.1)) == pytest.approx(
        (1.9154719020486215, 1.9304253028840486), rel=1e-12
    )


def test_the_same_samples_give_the_same_interval_whatever_was_drawn_before() -> None:
    first = median_interval(TEN)
    random.seed(5)
    random.random()

    assert median_interval(TEN) == first


def test_the_interval_lies_around_the_median_and_narrows_with_more_samples() -> None:
    few, many = noise(1.0, 30), noise(1.0, 200)

    low, high = median_interval(few)
    assert low <= median(few) <= high
    narrow_low, narrow_high = median_interval(many)
    assert narrow_high - narrow_low < high - low


def test_the_ratio_of_equal_things_is_one_in_nearly_every_interval() -> None:
    intervals = [ratio_interval(noise(1.0, 30, seed), noise(1.0, 30, 100 + seed)) for seed in range(12)]

    assert sum(low < 1 < high for low, high in intervals) >= 10


@pytest.mark.parametrize("samples", [[], [0.25]])
def test_one_sample_has_no_interval(samples: list[float]) -> None:
    with pytest.raises(ValueError, match=f"at least 2 samples and got {len(samples)}"):
        median_interval(samples)
    with pytest.raises(ValueError, match="at least 2 samples"):
        ratio_interval(TEN, samples)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("n", [1, 2, 10, 33])
def test_percentiles_are_interpolated_linearly_as_numpy_does(share: float, n: int) -> None:
    samples = noise(1.0, n)

    assert percentile(samples, share) == pytest.approx(float(np.quantile(samples, share)), rel=1e-12)
