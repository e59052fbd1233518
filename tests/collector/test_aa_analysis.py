"""A study's numbers, on runs whose spread is known and on two runs of an H200."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from builders import EPOCH, a_failure, a_header, a_measurement, a_run, a_sha, a_window

from collector.aa_analysis import analyse, smallest_slowdown
from collector.aa_report import study_json, study_text
from collector.errors import StudyError
from store.bundle import read_bundle
from store.database import Database
from store.folding import fold_windows
from store.records import FoldStatus, Interval, Measurement, Run, Tier
from store.studies import load_studies, save_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.studies import AaStudy

H200 = Path(__file__).parents[1] / "data" / "h200"
STUDY_ID = "0a1b2c3d-0000-4000-8000-000000000000"


def study_of(runs: Sequence[Run]) -> AaStudy:
    return analyse(runs, study_id=STUDY_ID, analysed_at=EPOCH, tool_version="0.1.0")


def within(low: float, center: float, high: float, **changes: Any) -> Measurement:
    """A measurement that folded to this interval."""
    return a_measurement(interval=Interval(center, low, high, 8, FoldStatus.OK), **changes)


def runs_with(*measurements: Measurement, **header: Any) -> list[Run]:
    """One run of each measurement."""
    return [a_run(10, number=i, measurements=(m,), header=header) for i, m in enumerate(measurements)]


def slowdown_between(one: Measurement, other: Measurement) -> float | None:
    return smallest_slowdown(one.interval, other.interval, resolution_ms=other.resolution_ms)


def spread_runs(*, runs: int, run_sd: float, window_sd: float, seed: int = 1) -> list[Run]:
    """Runs of eight windows whose logs spread by these, with hardly any noise inside a window."""
    rng = random.Random(seed)
    made = []
    for _ in range(runs):
        level = math.log(0.25) + rng.gauss(0, run_sd)
        medians = [math.exp(level + rng.gauss(0, window_sd)) for _ in range(8)]
        windows = tuple(a_window(i, samples_ms=(median,) * 9) for i, median in enumerate(medians))
        made.append(a_measurement(windows=windows, resolution_ms=0.0))
    return runs_with(*made)


def test_pairs_apart_are_counted_and_pairs_that_touch_are_not() -> None:
    study = study_of(runs_with(within(1.0, 1.1, 1.2), within(1.2, 1.3, 1.4), within(1.5, 1.6, 1.7)))
    (result,) = study.results

    assert (result.runs, result.pairs, result.pairs_flagged) == (3, 3, 2)
    assert study.false_alarms == pytest.approx(2 / 3)


def test_the_smallest_slowdown_is_the_gap_between_the_far_ends() -> None:
    one, other = (within(0.99, 1.0, 1.01, resolution_ms=0.0), within(0.98, 1.0, 1.03, resolution_ms=0.0))

    assert slowdown_between(one, other) == pytest.approx(1.01 / 0.98 - 1)
    assert slowdown_between(other, one) == pytest.approx(1.03 / 0.99 - 1)


def test_runs_that_lie_apart_would_show_any_slowdown() -> None:
    slowdown = slowdown_between(within(1.0, 1.1, 1.2), within(1.5, 1.6, 1.7))

    assert slowdown is not None
    assert slowdown < 0


def test_a_refused_interval_shows_none() -> None:
    assert slowdown_between(a_measurement(passes=2), a_measurement()) is None
    assert slowdown_between(a_measurement(), a_measurement(passes=2)) is None


@pytest.mark.parametrize("seed", range(5))
def test_windows_slower_by_that_much_and_no_less_fold_to_an_interval_that_stands_clear(seed: int) -> None:
    """The claim that no folding again is needed, quantum included."""
    baseline = a_measurement(seed=seed, resolution_ms=0.002)
    baseline = replace(baseline, interval=folded(baseline, 1.0))
    candidate = a_measurement(seed=seed + 100, resolution_ms=0.002)
    candidate = replace(candidate, interval=folded(candidate, 1.0))
    slowdown = slowdown_between(baseline, candidate)
    assert slowdown is not None
    assert baseline.interval.high is not None

    for scale, clear in ((1 + slowdown * 1.001, True), (1 + slowdown * 0.999, False)):
        low = folded(candidate, scale).low
        assert low is not None
        assert (low > baseline.interval.high) is clear


def folded(measurement: Measurement, scale: float) -> Interval:
    windows = [[sample * scale for sample in window.kept_ms] for window in measurement.windows]
    return fold_windows(windows, resolution=measurement.resolution_ms)


def test_spreads_that_were_put_in_come_out() -> None:
    (result,) = study_of(spread_runs(runs=200, run_sd=0.01, window_sd=0.003)).results

    assert result.window_sd == pytest.approx(0.003, rel=0.05)
    # The centre of eight windows is itself off by about 0.003 * sqrt(pi / 2 / 8).
    assert result.run_sd == pytest.approx(math.hypot(0.01, 0.0013), rel=0.12)
    assert result.center_ms == pytest.approx(0.25, rel=0.005)
    assert result.pairs == 200 * 199 / 2


def test_runs_that_a_session_moves_are_called_different_more_often_than_those_it_does_not() -> None:
    calm = study_of(spread_runs(runs=30, run_sd=0.0, window_sd=0.003)).false_alarms
    moved = study_of(spread_runs(runs=30, run_sd=0.01, window_sd=0.003)).false_alarms

    assert calm is not None
    assert moved is not None
    assert calm < 0.02
    assert moved > 0.5


def test_ninety_five_of_a_hundred_pairs_show_the_slowdown_between() -> None:
    runs = spread_runs(runs=20, run_sd=0.002, window_sd=0.003)
    (result,) = study_of(runs).results
    measurements = [run.measurements[0] for run in runs]
    slowdowns = [
        slowdown_between(one, other) for one in measurements for other in measurements if one is not other
    ]

    shown = sum(slowdown is not None and slowdown <= result.smallest_seen for slowdown in slowdowns)
    assert len(slowdowns) == 380
    assert shown == 361


def test_a_run_is_judged_against_the_pool_of_the_others() -> None:
    """Seven runs within a per mille, the eighth half a per cent off: it alone is flagged."""
    centers = [1.0, 1.0005, 0.9995, 1.001, 0.999, 1.0003, 0.9997, 1.005]
    measured = [within(0.99995 * c, c, 1.00005 * c, resolution_ms=0.0) for c in centers]
    (result,) = study_of(runs_with(*measured)).results

    assert (result.pool_flagged, result.pool_runs) == (1, 8)
    assert result.pairs_flagged == 28  # so narrow are the intervals by themselves


def test_six_runs_leave_too_few_for_a_pool_and_seven_do_not() -> None:
    six = study_of(spread_runs(runs=6, run_sd=0.001, window_sd=0.001))
    seven = study_of(spread_runs(runs=7, run_sd=0.001, window_sd=0.001))

    assert (six.pool_runs, six.results[0].pool_smallest_seen) == (0, None)
    assert "Too few runs for a pool of the others: it takes 6 beside the one judged" in study_text(six)
    assert "pool sees" not in study_text(six)
    assert seven.pool_runs == 7
    assert "Against the pool of the other runs 0 of 7 would have been flagged" in study_text(seven)
    assert "pool sees" in study_text(seven)


def test_a_pool_of_many_runs_is_of_the_twenty_nearest_in_time() -> None:
    """After a step, the last run is 1 % off its neighbours: beside the runs before the step it is nothing."""
    levels = [2.0, 2.001] * 15 + [1.0, 1.0005] * 12 + [1.01]
    measured = [within(0.9999 * x, x, 1.0001 * x, resolution_ms=0.0) for x in levels]
    (result,) = study_of(runs_with(*measured)).results

    assert (result.pool_flagged, result.pool_runs) == (1, 55)


def test_equal_runs_have_no_spread() -> None:
    (result,) = study_of(runs_with(*[a_measurement(seed=3)] * 3)).results

    assert result.run_sd == 0.0
    assert result.pairs_flagged == 0


def test_numbers_of_different_series_are_never_compared() -> None:
    runs = runs_with(a_measurement(seed=1), a_measurement(seed=2))
    runs += runs_with(
        a_measurement(median_ms=0.5, seed=3), a_measurement(median_ms=0.5, seed=4), gpu_uuid="GPU-b"
    )

    study = study_of(runs)

    assert {result.series.gpu_uuid for result in study.results} == {runs[0].header.gpu_uuid, "GPU-b"}
    assert [(result.pairs, result.pairs_flagged) for result in study.results] == [(1, 0), (1, 0)]
    assert len(study.gpu_uuids) == 2


def test_what_fewer_than_two_runs_measured_is_named_and_left_out() -> None:
    runs = [
        a_run(10, number=0, measurements=(a_measurement(seed=1), a_measurement("once"))),
        a_run(
            10,
            number=1,
            measurements=(a_measurement(seed=2), a_measurement("short", passes=2)),
            failures=(a_failure("broken"), a_failure(case=None)),
        ),
    ]

    study = study_of(runs)

    assert [result.series.case.benchmark for result in study.results] == ["softmax"]
    assert study.left_out == ("broken", "once[rows=1024]", "short[rows=1024]")
    assert "fewer than two runs: broken, once[rows=1024], short[rows=1024]" in study_text(study)


def test_the_tier_of_a_result_is_the_lowest_of_its_runs() -> None:
    study = study_of(runs_with(a_measurement(seed=1), a_measurement(seed=2, tier=Tier.C)))

    assert study.results[0].tier is Tier.C
    assert "1 benchmark of tier C: a run of them gets no verdict" in study_text(study)


def test_time_is_counted_in_all_and_for_a_case_of_a_run() -> None:
    """The builder's runs take forty seconds."""
    two = (a_measurement("a"), a_measurement("b"))
    runs = [a_run(10, number=0, measurements=two), a_run(10, number=1, measurements=two[:1] * 1)]
    runs[1] = replace(runs[1], failures=(a_failure(), a_failure("other"), a_failure("third")))

    study = study_of(runs)
    assert study.seconds == 80
    assert study.seconds_per_case == pytest.approx((40 / 2 + 40 / 4) / 2)


def test_runs_are_listed_oldest_first_whatever_order_they_come_in() -> None:
    runs = spread_runs(runs=4, run_sd=0.001, window_sd=0.001)

    assert study_of(runs[::-1]) == study_of(runs)
    assert study_of(runs).run_ids == tuple(run.header.run_id for run in runs)


def test_runs_of_several_commits_are_compared_and_said_to_be() -> None:
    runs = [a_run(commit, measurements=(a_measurement(seed=commit),)) for commit in (10, 11)]

    study = study_of(runs)
    assert study.commit_shas == (a_sha(10), a_sha(11))
    assert "of several commits: what differs may be the code" in study_text(study)


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([], "0 run cannot be compared"),
        (runs_with(a_measurement()), "1 run cannot be compared with another: measure 2 or more"),
        (
            [*runs_with(a_measurement()), *runs_with(a_measurement(), repository="elsewhere")],
            "different repositories",
        ),
        (
            [*runs_with(a_measurement()), *runs_with(a_measurement(), gpu_uuid="GPU-b")],
            "no series was measured twice",
        ),
        (runs_with(a_measurement(passes=2), a_measurement(passes=2)), "need three passes or more"),
    ],
)
def test_what_cannot_be_compared_is_refused(runs: list[Run], words: str) -> None:
    with pytest.raises(StudyError, match=words):
        study_of(runs)


@pytest.fixture(name="recorded", scope="module")
def _recorded() -> AaStudy:
    """Two runs of an H200, on commits that time the same code."""
    return study_of([read_bundle(H200 / name) for name in ("first.kwrun", "second.kwrun")])


def test_two_runs_of_an_h200_are_never_called_different(recorded: AaStudy) -> None:
    assert (recorded.pairs_flagged, recorded.pairs) == (0, 29)
    assert recorded.left_out == ()
    assert {result.tier for result in recorded.results} == {Tier.A}


def test_what_those_runs_could_have_shown(recorded: AaStudy) -> None:
    """Known answers, so that a change of the method is seen."""
    seen = {result.series.case.benchmark: result.smallest_seen for result in recorded.results}

    assert seen["scatter_add"] == pytest.approx(0.0024, abs=0.0001)
    assert seen["sentinel_tiny"] == pytest.approx(0.167, abs=0.001)
    assert recorded.seconds_per_case == pytest.approx(1.91, abs=0.01)


def test_a_study_of_recorded_runs_comes_back_from_a_store(recorded: AaStudy, tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    save_study(database, recorded)

    assert load_studies(database) == [recorded]


def test_the_text_has_a_row_for_each_benchmark_and_the_sums_below(recorded: AaStudy) -> None:
    text = study_text(recorded)

    (row,) = [line for line in text.splitlines() if line.startswith("scatter_add")]
    assert row.split("  ")[-1] == "A"
    assert "0 of 1" in row
    assert "0 of 29 pairs of runs lie apart (0.00 %)" in text
    assert "in half of the benchmarks, and one of 16.7 % in all of them" in text
    assert "111 s in all, 1.91 s a benchmark and run" in text


def test_a_slowdown_that_nobody_would_miss_is_no_sensitivity() -> None:
    text = study_text(study_of(runs_with(within(1e-3, 1.0, 99.0), within(1e-3, 1.0, 99.0))))

    assert "over 300.0 %" in text


def test_runs_apart_are_said_to_show_any_slowdown() -> None:
    """Two runs can lie apart one way only; three can leave 95 % of the pairs below nothing at all."""
    apart = [within(level - 0.01, level, level + 0.01) for level in (1.0, 2.0)]
    (result,) = study_of(runs_with(*apart)).results

    assert result.smallest_seen == pytest.approx(2.01 / 0.99 - 1, rel=1e-3)
    flat = replace(study_of(runs_with(*apart)), results=(replace(result, smallest_seen=-0.2),))
    assert " any " in study_text(flat)


def test_json_holds_every_number_of_the_text(recorded: AaStudy) -> None:
    data = study_json(recorded)

    assert (data["pairs"], data["pairs_flagged"], data["false_alarms"]) == (29, 0, 0.0)
    assert len(data["results"]) == 29
    assert set(data["results"][0]) >= {"run_sd", "window_sd", "smallest_seen", "center_ms", "tier", "series"}
    assert data["run_ids"] == list(recorded.run_ids)


def test_the_study_keeps_its_own_time() -> None:
    runs = spread_runs(runs=2, run_sd=0.001, window_sd=0.001)
    later = [
        replace(run, header=a_header(10, number=i, ended_at=run.header.started_at + timedelta(seconds=5)))
        for i, run in enumerate(runs)
    ]

    assert study_of(later).seconds == 10
    assert study_of(later).analysed_at == EPOCH
