"""Ten real runs of the same code on one H200, and of the same calls with one percent more work."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collector.aa_analysis import analyse
from collector.intervals import fold_windows
from store.bundle import read_bundle
from store.records import Measurement, Run, Tier

if TYPE_CHECKING:
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
