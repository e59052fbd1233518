"""Eight real runs of the same code on one H200, and of the same calls with one percent more work."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from alerts.judging import judge_run
from store.bundle import read_bundle
from store.database import Database
from store.records import BaselineKind, Measurement, Outcome, Run, Standing, Tier
from store.runs import save_run

FOLDER = Path(__file__).parent / "data" / "h200" / "aa"


@pytest.fixture(name="runs", scope="module")
def _runs() -> list[Run]:
    return [read_bundle(path) for path in sorted(FOLDER.glob("*.kwrun"))]


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


def test_every_measurement_of_all_eight_runs_is_tier_a(runs: list[Run]) -> None:
    assert len(runs) == 8
    assert {m.tier for run in runs for m in run.measurements} == {Tier.A}
    assert not [failure for run in runs for failure in run.failures]


def test_23_of_1036_pairs_are_apart_and_most_of_them_where_only_some_runs_paused(runs: list[Run]) -> None:
    apart = {
        label: sum(are_apart(a, b) for a, b in combinations(measured, 2))
        for label, measured in by_case(runs).items()
    }

    assert sum(apart.values()) == 23
    assert sum(len(measured) * (len(measured) - 1) // 2 for measured in by_case(runs).values()) == 1036
    worst = sorted(apart, key=lambda label: -apart[label])[:3]
    assert sum(apart[label] for label in worst) == 17


@pytest.mark.parametrize(
    ("call", "n_seen"), [("matmul", 54), ("attention", 48), ("softmax", 56), ("mlp", 51)]
)
def test_about_one_percent_more_work_is_seen_in_most_pairs_and_never_the_wrong_way(
    runs: list[Run], call: str, n_seen: int
) -> None:
    cases = by_case(runs)
    plain, more = cases[f"planted_{call}[more=0]"], cases[f"planted_{call}[more=1]"]
    pairs = [(a, b) for i, a in enumerate(plain) for j, b in enumerate(more) if i != j]

    effects = [(b.interval.center or 0) - (a.interval.center or 0) for a, b in pairs if are_apart(a, b)]

    assert len(pairs) == 56
    assert len(effects) == n_seen
    assert min(effects) > 0


def test_against_the_pool_of_the_runs_before_nothing_is_confirmed(runs: list[Run], tmp_path: Path) -> None:
    database = Database(tmp_path / "aa.duckdb")
    for run in runs:
        save_run(database, run)

    verdicts = [v for run in runs[6:] for v in judge_run(database, run.header.run_id).verdicts]

    assert {v.baseline_kind for v in verdicts} == {BaselineKind.POOL}
    assert not [v for v in verdicts if v.standing is Standing.CONFIRMED]
    assert not [v for v in verdicts if v.outcome is Outcome.REGRESSED and (v.effect or 0) >= 0.01]
