"""Folding windows into intervals: known answers, laws, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.intervals import fold_windows
from store.records import FoldStatus, RecordInvalid

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "intervals.json").read_text(encoding="utf-8")
)
TOLERANCE: float = VECTORS["tolerance_relative"]

durations = st.floats(min_value=1e-4, max_value=1e4)
measurements = st.lists(st.lists(durations, min_size=1, max_size=12), min_size=6, max_size=12)


@pytest.mark.parametrize("dataset", VECTORS["datasets"], ids=lambda d: str(d["id"]))
def test_every_known_dataset_folds_to_its_known_interval(dataset: dict[str, Any]) -> None:
    folded = fold_windows(
        dataset["windows"],
        resolution=dataset["resolution"],
        run_sd=dataset["run_sd"],
        run_df=dataset["run_df"],
    )

    expected = dataset["expect"]
    assert folded.windows == expected["windows"]
    assert folded.status == expected["status"]
    assert folded.center == pytest.approx(expected["centre"], rel=TOLERANCE)
    for got, want in ((folded.low, expected["lo"]), (folded.high, expected["hi"])):
        assert got == want if want is None else got == pytest.approx(want, rel=TOLERANCE)


@pytest.mark.parametrize("pair", VECTORS["pairs"], ids=lambda p: f"{p['baseline']}-x{p['candidate_scale']}")
def test_every_known_candidate_folds_to_its_known_interval(pair: dict[str, Any]) -> None:
    dataset = next(d for d in VECTORS["datasets"] if d["id"] == pair["baseline"])

    folded = fold_windows(
        pair["candidate_windows"],
        resolution=dataset["resolution"],
        run_sd=dataset["run_sd"],
        run_df=dataset["run_df"],
    )

    expected = pair["candidate_expect"]
    assert folded.status == expected["status"]
    assert folded.center == pytest.approx(expected["centre"], rel=TOLERANCE)
    if expected["lo"] is not None:
        assert folded.low == pytest.approx(expected["lo"], rel=TOLERANCE)
        assert folded.high == pytest.approx(expected["hi"], rel=TOLERANCE)


@given(windows=measurements)
def test_identical_samples_give_identical_intervals(windows: list[list[float]]) -> None:
    copied = [list(window) for window in windows]

    assert fold_windows(windows, resolution=0.0) == fold_windows(copied, resolution=0.0)


@given(windows=measurements, seed=st.randoms())
def test_the_order_of_windows_and_samples_does_not_matter(windows: list[list[float]], seed: Any) -> None:
    shuffled = [sorted(window, key=lambda _: seed.random()) for window in windows]
    seed.shuffle(shuffled)

    plain, mixed = fold_windows(windows, resolution=0.0), fold_windows(shuffled, resolution=0.0)

    assert mixed.low == pytest.approx(plain.low, rel=1e-12)
    assert mixed.high == pytest.approx(plain.high, rel=1e-12)


@given(windows=measurements, scale=st.floats(min_value=1e-3, max_value=1e3))
def test_a_change_of_unit_scales_the_interval(windows: list[list[float]], scale: float) -> None:
    plain = fold_windows(windows, resolution=0.0)
    scaled = fold_windows([[s * scale for s in window] for window in windows], resolution=0.0)

    assert plain.bounds is not None
    assert scaled.bounds is not None
    assert scaled.bounds == pytest.approx([b * scale for b in plain.bounds], rel=1e-9)


def test_two_windows_are_refused_but_their_centre_is_told() -> None:
    folded = fold_windows([[1.0, 1.0], [4.0]], resolution=0.0)

    assert folded.status is FoldStatus.REFUSED
    assert folded.bounds is None
    assert folded.center == pytest.approx(2.0)


def test_no_window_at_all_is_refused_without_a_centre() -> None:
    assert fold_windows([], resolution=0.0).center is None


def test_one_sample_per_window_still_folds() -> None:
    folded = fold_windows([[1.0], [1.1], [1.2], [1.3], [1.4], [1.5]], resolution=0.0)

    assert folded.bounds is not None
    low, center, high = folded.bounds
    assert 1.0 <= low < center < high <= 1.5


@pytest.mark.parametrize(
    ("windows", "message"),
    [
        ([[1.0], [0.0]], "not a duration"),
        ([[1.0], [float("nan")]], "not a duration"),
        ([[1.0], [-2.0]], "not a duration"),
        ([[1.0], []], "window 1 holds no sample"),
    ],
)
def test_what_is_no_duration_never_becomes_an_interval(windows: list[list[float]], message: str) -> None:
    with pytest.raises(RecordInvalid, match=message):
        fold_windows(windows, resolution=0.0)


def test_half_an_estimate_of_the_run_spread_is_refused() -> None:
    with pytest.raises(RecordInvalid, match="both or neither"):
        fold_windows([[1.0]] * 8, resolution=0.0, run_sd=0.01)
