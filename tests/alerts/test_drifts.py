"""Drifts of runs that lie in a real store, and what the sentinels have to say about them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from builders import EPOCH, a_header, a_measurement, a_point, a_run, a_sha
from judgements import a_judgement, a_line

from alerts.judging import judge_run
from alerts.message import compose
from alerts.policy import Policy
from alerts.terminal import render_text
from store.change_points import ChangePoint, save_change_points
from store.database import Database
from store.records import GitTag, Outcome, Reason, SeriesPoint
from store.runs import save_run
from store.triage import save_triage_events
from store.triage_events import Action, Scope, TriageEvent

if TYPE_CHECKING:
    from pathlib import Path

NEWEST = 34
TAGS = (GitTag(name="v1.2.0", commit_sha=a_sha(8)), GitTag(name="nightly", commit_sha=a_sha(12)))


def level_ms(commit: int) -> float:
    """0.5 % slower with each commit from 9 to 14."""
    return 0.25 * (1 + 0.005 * min(max(commit - 8, 0), 6))


@pytest.fixture(scope="module", name="database")
def _database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """34 commits, 3 % slower since v1.2.0, step by small step."""
    database = Database(tmp_path_factory.mktemp("drift") / "runs.duckdb")
    for commit in range(1, NEWEST + 1):
        measurement = a_measurement(seed=commit, median_ms=level_ms(commit))
        save_run(database, a_run(commit, measurements=(measurement,), git_tags=TAGS))
    return database


def test_a_drift_since_a_release_of_the_store_is_found_and_said(database: Database) -> None:
    judgement = judge_run(database, a_header(NEWEST).run_id)

    (verdict,) = judgement.verdicts
    assert (verdict.outcome, verdict.reason) == (Outcome.REGRESSED, Reason.DRIFTED)
    assert verdict.message.startswith("drift: +3.0")
    assert " since v1.2.0 (95 %: " in verdict.message
    text = render_text(compose(judgement))
    assert "Drift: softmax[rows=1024] +3.0" in text
    assert "8 windows, 8 runs up to v1.2.0" in text


def test_which_tags_are_releases_is_a_matter_of_policy(database: Database) -> None:
    (verdict,) = judge_run(database, a_header(NEWEST).run_id, Policy(release_tags=("nightly",))).verdicts

    assert verdict.drift is not None
    assert verdict.drift.since == "nightly"


def test_a_release_beyond_the_reach_of_the_search_is_looked_up(database: Database) -> None:
    (verdict,) = judge_run(database, a_header(NEWEST).run_id, Policy(reach_runs=20)).verdicts

    assert verdict.drift is not None
    assert verdict.drift.since == "v1.2.0"


def test_a_drift_that_was_accepted_or_improved_upon_is_over(database: Database, tmp_path: Path) -> None:
    database = Database(shutil.copy(database.path, tmp_path / "copy.duckdb"))
    faster = ChangePoint(
        series=a_point(16).series, repository=a_header(16).repository, commit_before=a_sha(15),
        commit_sha=a_sha(16), run_id=a_header(16).run_id, size=-0.1, size_low=-0.1, size_high=-0.1,
        p_value=0.001, method_version=1, found_at=EPOCH,
    )  # fmt: skip
    save_change_points(database, faster.repository, {faster.series: [faster]})
    (improved,) = judge_run(database, a_header(NEWEST).run_id).verdicts
    save_change_points(database, faster.repository, {faster.series: []})
    decision = TriageEvent(
        event_id="00000000-0000-4000-8000-000000000001", repository=faster.repository,
        action=Action.ACCEPT, scope=Scope(benchmark="softmax"), commit_sha=a_sha(14),
        body="needed for the new format", decided_by="Ada Example", decided_at=EPOCH,
    )  # fmt: skip
    save_triage_events(database, [decision])
    (accepted,) = judge_run(database, a_header(NEWEST).run_id).verdicts

    assert [(v.outcome, v.drift) for v in (improved, accepted)] == [(Outcome.UNCHANGED, None)] * 2


@pytest.mark.parametrize(("sentinel_ms", "reason"), [(0.2575, Reason.MACHINE_MOVED), (0.25, Reason.DRIFTED)])
def test_a_machine_that_drifted_itself_takes_drifts_back_and_no_steps(
    sentinel_ms: float, reason: Reason
) -> None:
    def series(name: str, before: float, after: float, last: float) -> list[SeriesPoint]:
        tags = ("sentinel",) if name == "watch" else ()
        levels = enumerate([before] * 20 + [after] * 20 + [last], start=1)
        return [a_point(commit, benchmark=name, tags=tags, median_ms=level) for commit, level in levels]

    made = [
        series("drifted", 0.25, 0.2575, 0.2575),
        series("stepped", 0.25, 0.25, 0.26),
        series("watch", 0.25, sentinel_ms, sentinel_ms),
    ]
    history = tuple(point for points in made for point in points[:-1])

    judgement = a_judgement(*(points[-1] for points in made), history=history, line=a_line(40))

    reasons = {v.series.case.benchmark: v.reason for v in judgement.verdicts}
    assert (reasons["drifted"], reasons["stepped"]) == (reason, Reason.INTERVALS_APART)
