"""Ten real runs of the same code on one H200, and of the same calls with one percent more work."""

from __future__ import annotations

import json
import math
import statistics
from collections import defaultdict
from datetime import UTC, datetime
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from alerts.baseline import form_baseline
from alerts.policy import Policy
from alerts.verdicts import judge_point
from collector.aa_analysis import analyse
from collector.intervals import fold_windows
from store.bundle import read_bundle
from store.database import Database
from store.records import BaselineKind, Measurement, Outcome, Run, Tier
from store.runs import save_run
from store.series import load_points

if TYPE_CHECKING:
    from store.records import SeriesKey, SeriesPoint, Verdict
    from store.studies import AaStudy

FOLDER = Path(__file__).parent / "data" / "h200" / "aa"


@pytest.fixture(name="runs", scope="module")
def _runs() -> list[Run]:
    return [read_bundle(path) for path in sorted(FOLDER.glob("*.kwrun"))]


@pytest.fixture(name="study", scope="module")
def _study(runs: list[Run]) -> AaStudy:
    return analyse(
        runs,
        study_id="0a1b2c3d-0000-4000-8000-000000000000",
        analysed_at=datetime(2026, 12, 1, tzinfo=UTC),
        tool_version="0.1.0",
    )


def by_case(runs: list[Run]) -> dict[str, list[Measurement]]:
    cases: dict[str, list[Measurement]] = {}
    for run in runs:
        for measurement in run.measurements:
            cases.setdefault(measurement.case.label, []).append(measurement)
    return cases


def are_apart(one: Measurement, other: Measurement) -> bool:
    assert one.interval.bounds is not None
    assert other.interval.bounds is not None
    return (
        one.interval.bounds[0] > other.interval.bounds[2] or other.interval.bounds[0] > one.interval.bounds[2]
    )


def test_every_measurement_of_all_ten_runs_is_tier_a(runs: list[Run]) -> None:
    assert len(runs) == 10
    assert [m.tier for run in runs for m in run.measurements] == [Tier.A] * 370
    assert not [failure for run in runs for failure in run.failures]


def test_the_samples_fold_to_the_intervals_that_were_measured(runs: list[Run]) -> None:
    for measurement in runs[0].measurements:
        kept = [window.kept_ms for window in measurement.counted_windows]

        assert fold_windows(kept, resolution=measurement.resolution_ms) == measurement.interval


def test_30_of_1665_pairs_are_apart_25_of_them_among_the_29_cases_of_a_plain_run(study: AaStudy) -> None:
    plain = [r for r in study.results if not r.series.case.benchmark.startswith("planted_")]

    assert (study.pairs_flagged, study.pairs) == (30, 1665)
    assert (sum(r.pairs_flagged for r in plain), sum(r.pairs for r in plain), len(plain)) == (25, 1305, 29)


def test_no_clock_fell_and_no_window_changed_its_pause(runs: list[Run]) -> None:
    windows = [window for run in runs for m in run.measurements for window in m.windows]

    assert sum(len(window.samples_ms) for window in windows) == 115_820
    assert {clock for window in windows for clock in window.sm_clock_mhz} == {1980}
    assert {len(set(window.pause_ms)) for window in windows} == {1}


def test_half_of_the_calls_over_100_us_show_a_slowdown_of_0_69_percent(study: AaStudy) -> None:
    seen = sorted(result.smallest_seen for result in study.results if result.center_ms > 0.1)

    assert len(seen) == 23
    assert seen[11] == pytest.approx(0.0069, abs=0.00005)
    assert seen[-1] == pytest.approx(0.0238, abs=0.00005)
    assert sum(slowdown <= 0.005 for slowdown in seen) == 4


def test_a_run_took_1_23_seconds_a_case(study: AaStudy) -> None:
    assert study.seconds_per_case == pytest.approx(1.23, abs=0.005)


@pytest.mark.parametrize(
    ("call", "n_seen"), [("matmul", 90), ("attention", 79), ("softmax", 90), ("mlp", 51)]
)
def test_about_one_percent_more_work_is_seen_in_most_pairs_and_never_the_wrong_way(
    runs: list[Run], call: str, n_seen: int
) -> None:
    cases = by_case(runs)
    plain, more = cases[f"planted_{call}[more=0]"], cases[f"planted_{call}[more=1]"]
    pairs = [(a, b) for i, a in enumerate(plain) for j, b in enumerate(more) if i != j]

    effects = [(b.interval.center or 0) - (a.interval.center or 0) for a, b in pairs if are_apart(a, b)]

    assert len(pairs) == 90
    assert len(effects) == n_seen
    assert min(effects) > 0


def test_against_the_pool_of_the_other_runs_1_of_370_is_flagged(study: AaStudy) -> None:
    flagged = [r.series.case.label for r in study.results for _ in range(r.pool_flagged)]

    assert (study.pool_flagged, study.pool_runs) == (1, 370)
    assert flagged == ["matmul_prefill[dtype=bfloat16, k=4096, m=4096, n=4096]"]


def test_against_the_pool_half_of_the_calls_over_100_us_show_a_slowdown_of_0_52_percent(
    study: AaStudy,
) -> None:
    seen = sorted(r.pool_smallest_seen or 0.0 for r in study.results if r.center_ms > 0.1)

    assert seen[11] == pytest.approx(0.0052, abs=0.00005)
    assert seen[-1] == pytest.approx(0.0135, abs=0.00005)
    assert sum(slowdown <= 0.005 for slowdown in seen) == 10


def test_the_study_counts_by_the_rule_that_verdicts_go_by(
    runs: list[Run], study: AaStudy, tmp_path: Path
) -> None:
    database = Database(tmp_path / "aa.duckdb")
    for run in runs:
        save_run(database, run)
    series: dict[SeriesKey, list[SeriesPoint]] = defaultdict(list)
    for point in load_points(database):
        series[point.series].append(point)

    for result in study.results:
        points = series[result.series]
        verdicts = [judged(point, points) for point in points]

        assert sum(v.outcome is not Outcome.UNCHANGED for v in verdicts) == result.pool_flagged


def judged(point: SeriesPoint, points: list[SeriesPoint]) -> Verdict:
    baseline = form_baseline([other for other in points if other is not point], Policy())
    assert baseline is not None
    assert baseline.kind is BaselineKind.POOL
    return judge_point(point, baseline, Policy(), judged_at=datetime(2026, 12, 1, tzinfo=UTC))


def test_four_fifths_of_the_time_go_to_neither_calls_nor_pauses(study: AaStudy) -> None:
    spent = study.wall_time
    assert spent is not None

    assert study.idle_share == pytest.approx(0.799, abs=0.0005)
    shares = [
        part / study.seconds for part in (spent.calls_s, spent.pauses_s, spent.setup_s, spent.reading_s)
    ]
    assert shares == pytest.approx([0.043, 0.158, 0.246, 0.101], abs=0.0005)


TENSOR_CORE_CALLS = (
    "attention_prefill",
    "matmul_fp8",
    "matmul_int8",
    "planted_attention",
    "planted_matmul",
    "planted_mlp",
)


def test_calls_on_the_tensor_cores_are_slow_and_fast_together_pass_by_pass(runs: list[Run]) -> None:
    """Were they independent, the mean of the calls of a pass would vary half as much."""
    passes: dict[tuple[str, int], list[float]] = defaultdict(list)
    for label, measured in by_case(runs).items():
        if label.startswith(TENSOR_CORE_CALLS):
            level = statistics.median(w.median_ms or 0.0 for m in measured for w in m.windows)
            for run, measurement in zip(runs, measured, strict=True):
                for window in measurement.windows:
                    passes[run.header.run_id, window.pass_index].append((window.median_ms or 0.0) / level - 1)

    within = math.sqrt(statistics.fmean(statistics.variance(values) for values in passes.values()))
    between = statistics.stdev(map(statistics.fmean, passes.values()))
    (calls,) = {len(values) for values in passes.values()}

    assert (len(passes), calls) == (80, 10)
    assert between / (within / math.sqrt(calls)) == pytest.approx(2.0, abs=0.1)


SECOND_CARD = FOLDER.parent / "aa-second-card.json"


@pytest.fixture(name="second_card", scope="module")
def _second_card() -> dict[str, list[list[float]]]:
    """The intervals of ten runs on another card, by case."""
    kept = json.loads(SECOND_CARD.read_text(encoding="utf-8"))
    return {label: [run["interval"] for run in runs] for label, runs in kept.items()}


def test_on_a_second_card_6_of_1665_pairs_are_apart_all_of_one_call(
    second_card: dict[str, list[list[float]]],
) -> None:
    apart = {
        label: sum(a[0] > b[2] or b[0] > a[2] for a, b in combinations(runs, 2))
        for label, runs in second_card.items()
    }

    assert sum(math.comb(len(runs), 2) for runs in second_card.values()) == 1665
    assert {label: count for label, count in apart.items() if count} == {
        "matmul_prefill[dtype=bfloat16, k=4096, m=2048, n=28672]": 6
    }


@pytest.mark.parametrize(
    ("call", "n_seen"), [("matmul", 90), ("attention", 86), ("softmax", 90), ("mlp", 13)]
)
def test_on_a_second_card_more_work_is_seen_in_279_of_360_pairs_and_never_the_wrong_way(
    second_card: dict[str, list[list[float]]], call: str, n_seen: int
) -> None:
    plain, more = second_card[f"planted_{call}[more=0]"], second_card[f"planted_{call}[more=1]"]
    pairs = [(a, b) for a, b in product(plain, more) if plain.index(a) != more.index(b)]

    assert len(pairs) == 90
    assert sum(b[0] > a[2] for a, b in pairs) == n_seen
    assert not any(b[2] < a[0] for a, b in pairs)
