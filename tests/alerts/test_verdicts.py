"""The verdict on one point: known answers and laws."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import a_point, a_window
from hypothesis import given
from hypothesis import strategies as st
from judgements import JUDGED_AT, POLICY, a_candidate, a_history

from alerts.baseline import Baseline, Doubt, form_baseline
from alerts.verdicts import judge_point, smallest_seen, widen
from store.comparing import compare_intervals
from store.folding import fold_windows
from store.records import BaselineKind, FoldStatus, Interval, Outcome, Reason, SeriesPoint, Standing, Tier

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "data" / "intervals.json").read_text(encoding="utf-8")
)
DATASETS = {dataset["id"]: dataset for dataset in VECTORS["datasets"]}
OUTCOMES = {
    "insufficient": Outcome.INCONCLUSIVE,
    "no-change": Outcome.UNCHANGED,
    "regression": Outcome.REGRESSED,
    "improvement": Outcome.IMPROVED,
}

bounds = st.tuples(*[st.floats(min_value=0.5, max_value=2.0)] * 3).map(sorted)


def an_interval(low: float, center: float, high: float) -> Interval:
    return Interval(center=center, low=low, high=high, windows=8, status=FoldStatus.OK)


def folded(dataset: dict[str, Any], windows: list[list[float]]) -> SeriesPoint:
    """A point of known samples, folded with the floors of its data set."""
    point = a_point(windows=tuple(a_window(i, samples_ms=tuple(w)) for i, w in enumerate(windows)))
    return replace(
        point,
        interval=fold_windows(
            windows,
            resolution=dataset["resolution"],
            run_sd=dataset["run_sd"],
            run_df=dataset["run_df"],
        ),
        resolution_ms=dataset["resolution"],
    )


def pool(**changes: Any) -> Baseline:
    baseline = form_baseline(a_history(**changes), POLICY)
    assert baseline is not None
    return baseline


@pytest.mark.parametrize("pair", VECTORS["pairs"], ids=lambda p: f"{p['baseline']}-x{p['candidate_scale']}")
def test_every_known_pair_has_its_known_verdict(pair: dict[str, Any]) -> None:
    dataset = DATASETS[pair["baseline"]]
    baseline = folded(dataset, dataset["windows"])
    candidate = folded(dataset, pair["candidate_windows"])

    verdict = judge_point(
        candidate,
        Baseline(kind=BaselineKind.SINGLE, points=(baseline,), interval=baseline.interval),
        POLICY,
        judged_at=JUDGED_AT,
    )

    assert verdict.outcome is OUTCOMES[pair["verdict"]]
    if "effect" in pair:
        assert verdict.effect is not None
        assert 1 + verdict.effect == pytest.approx(pair["effect"]["ratio"], rel=1e-6)


@given(candidate=bounds, baseline=bounds)
def test_swapping_candidate_and_baseline_flips_the_direction(
    candidate: list[float], baseline: list[float]
) -> None:
    flipped = {Outcome.REGRESSED: Outcome.IMPROVED, Outcome.IMPROVED: Outcome.REGRESSED}

    there = compare_intervals(an_interval(*candidate), an_interval(*baseline))
    back = compare_intervals(an_interval(*baseline), an_interval(*candidate))

    assert back is flipped.get(there, there)


@given(candidate=bounds, baseline=bounds, power=st.integers(min_value=-20, max_value=20))
def test_a_change_of_unit_leaves_the_verdict(
    candidate: list[float], baseline: list[float], power: int
) -> None:
    scale = 2.0**power  # a power of two, so that nothing is rounded

    plain = compare_intervals(an_interval(*candidate), an_interval(*baseline))
    scaled = compare_intervals(
        an_interval(*(scale * b for b in candidate)), an_interval(*(scale * b for b in baseline))
    )

    assert scaled is plain


def test_ends_that_touch_overlap_and_one_step_further_is_a_regression() -> None:
    baseline = an_interval(0.9, 1.0, 1.1)

    assert compare_intervals(an_interval(1.1, 1.2, 1.3), baseline) is Outcome.UNCHANGED
    assert compare_intervals(an_interval(math.nextafter(1.1, 2), 1.2, 1.3), baseline) is Outcome.REGRESSED
    assert compare_intervals(an_interval(0.7, 0.8, 0.9), baseline) is Outcome.UNCHANGED
    assert compare_intervals(an_interval(0.7, 0.8, math.nextafter(0.9, 0)), baseline) is Outcome.IMPROVED


def test_widening_is_the_run_history_floor_of_the_fold() -> None:
    windows = [a_window(i, median_ms=0.25 + 0.0001 * i, seed=i).kept_ms for i in range(8)]
    baseline = pool()
    assert baseline.run_sd is not None

    widened = widen(fold_windows(windows, resolution=3.2e-5), baseline, 3.2e-5)

    expected = fold_windows(windows, resolution=3.2e-5, run_sd=baseline.run_sd, run_df=19)
    assert widened.low == pytest.approx(expected.low, rel=1e-12)
    assert widened.high == pytest.approx(expected.high, rel=1e-12)


def test_a_single_run_widens_nothing() -> None:
    point = a_point(20)
    single = form_baseline([point], POLICY)
    assert single is not None

    assert widen(point.interval, single, point.resolution_ms) is point.interval


def test_a_slowdown_of_three_per_cent_is_flagged_against_a_pool() -> None:
    verdict = judge_point(a_candidate(1.03), pool(), POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.reason is Reason.INTERVALS_APART
    assert verdict.standing is Standing.FLAGGED
    assert verdict.baseline_kind is BaselineKind.POOL
    assert len(verdict.baseline_run_ids) == 20
    assert verdict.effect == pytest.approx(0.03, abs=0.003)
    assert verdict.message.startswith("3.")
    assert "slower than 20 runs up to 000000000 (95 %:" in verdict.message


def test_the_same_code_is_unchanged_and_the_message_says_what_would_have_been_seen() -> None:
    verdict = judge_point(a_candidate(1.0), pool(), POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.standing is Standing.NONE
    assert verdict.smallest_seen is not None
    assert 0 < verdict.smallest_seen < 0.01
    assert "would have been flagged" in verdict.message


def test_against_a_single_run_the_message_says_provisional() -> None:
    single = form_baseline([a_point(20)], POLICY)
    assert single is not None

    verdict = judge_point(a_candidate(1.03), single, POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.REGRESSED
    assert verdict.baseline_kind is BaselineKind.SINGLE
    assert "provisional - session variance unknown" in verdict.message


def test_uncommitted_changes_are_judged_and_the_message_says_so() -> None:
    verdict = judge_point(a_candidate(1.03, header={"dirty": True}), pool(), POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.REGRESSED
    assert "uncommitted changes" in verdict.message


def test_a_slowdown_of_the_smallest_size_seen_is_on_the_edge_of_being_flagged() -> None:
    candidate, baseline = an_interval(0.99, 1.0, 1.02), an_interval(1.98, 2.0, 2.04)
    smallest = smallest_seen(candidate, baseline)
    assert smallest is not None

    def slowed(by: float) -> Interval:
        return an_interval(*(2.0 * (1 + by) * bound for bound in (0.99, 1.0, 1.02)))

    assert compare_intervals(slowed(smallest - 1e-9), baseline) is Outcome.UNCHANGED
    assert compare_intervals(slowed(smallest + 1e-9), baseline) is Outcome.REGRESSED


def test_an_interval_that_reaches_zero_can_never_show_a_slowdown() -> None:
    assert smallest_seen(an_interval(0.0, 1.0, 2.0), an_interval(0.9, 1.0, 1.1)) is None


def test_two_windows_are_inconclusive_and_the_message_asks_for_more_passes() -> None:
    verdict = judge_point(a_candidate(passes=2, tier=Tier.C), pool(), POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason is Reason.TOO_FEW_WINDOWS
    assert verdict.message.startswith("2 usable windows give no interval")
    assert "more passes" in verdict.message


def test_tier_c_is_inconclusive_and_the_message_quotes_its_evidence() -> None:
    candidate = a_candidate(1.5, tier=Tier.C, tier_evidence=("SM clock CV 4.2 % over 3 %",))

    verdict = judge_point(candidate, pool(), POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason is Reason.TIER_TOO_LOW
    assert "SM clock CV 4.2 % over 3 %" in verdict.message
    assert verdict.effect is None


def test_without_a_baseline_the_verdict_carries_the_reason_given() -> None:
    doubt = Doubt(reason=Reason.NO_BASELINE, message="run `collect --commit abc`")

    verdict = judge_point(a_candidate(), doubt, POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert verdict.reason is Reason.NO_BASELINE
    assert verdict.message == "run `collect --commit abc`"
    assert verdict.baseline is None
    assert verdict.baseline_kind is BaselineKind.NONE


def test_a_pool_of_equal_centres_still_judges_by_the_timers_quantum() -> None:
    windows = tuple(a_window(i, samples_ms=(0.25,) * 30) for i in range(8))
    baseline = form_baseline(
        a_history(
            windows=windows,
            interval=fold_windows([w.kept_ms for w in windows], resolution=0.001),
            resolution_ms=0.001,
        ),
        POLICY,
    )
    assert baseline is not None
    same = a_candidate(windows=windows, interval=baseline.points[0].interval, resolution_ms=0.001)

    verdict = judge_point(same, baseline, POLICY, judged_at=JUDGED_AT)

    assert verdict.outcome is Outcome.UNCHANGED
    assert verdict.p_value is None
    assert verdict.smallest_seen == pytest.approx(0.2505 / 0.25 * 0.25 / 0.2495 - 1)
