"""A benchmark that was renamed keeps its history where steps are searched and where commits are compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from builders import EPOCH, a_failure, a_header, a_measurement, a_point, a_run, a_sha

from alerts.change_points import histories_along, renames_along, search
from alerts.compare import compare
from alerts.message import compose
from alerts.policy import Policy
from alerts.stepforms import render_steps, steps_json
from alerts.terminal import render_text
from store.change_points import load_change_points
from store.database import Database
from store.older_names import Renames
from store.records import Case, Outcome, Reason
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import SeriesPoint

OLD, NEW, NEWEST = "soft_max", "softmax", "softmax_rows"
RENAMED_AT, STEP_AT = 9, 13
LINE = {a_sha(number): 100 - number for number in range(100, 0, -1)}


def measure(database: Database, commit: int, name: str, ms: float, renamed_from: str | None = None) -> str:
    measurement = a_measurement(name, median_ms=ms, seed=commit, renamed_from=renamed_from)
    run = a_run(commit, measurements=(measurement,))
    save_run(database, run)
    return run.header.run_id


def points(name: str, commits: range) -> list[SeriesPoint]:
    return [a_point(commit, benchmark=name) for commit in commits]


@pytest.fixture(name="database", scope="module")
def _database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    """4 per cent slower under the old name, renamed, and 4 per cent slower again."""
    database = Database(tmp_path_factory.mktemp("renamed") / "runs.duckdb")
    for commit in range(1, 17):
        is_new = commit >= RENAMED_AT
        level = 0.25 * (1 + 0.04 * (commit >= 5) + 0.04 * (commit >= STEP_AT))
        measure(database, commit, NEW if is_new else OLD, level, OLD if commit == RENAMED_AT else None)
    return database


def test_steps_are_searched_over_the_runs_under_both_names(database: Database) -> None:
    (history,) = search(database, found_at=EPOCH)

    assert (history.series.case.benchmark, history.renamed_from) == (NEW, (OLD,))
    assert [point.header.commit_sha for point in history.points] == [a_sha(n) for n in range(1, 17)]
    assert [change.commit_sha for change in history.changes] == [a_sha(5), a_sha(STEP_AT)]
    assert history.left_out == 0


def test_a_step_is_stored_under_the_name_of_its_time_and_shown_under_todays(database: Database) -> None:
    histories = search(database, found_at=EPOCH)

    assert {change.commit_sha: change.series.case.benchmark for change in load_change_points(database)} == {
        a_sha(5): OLD,
        a_sha(STEP_AT): NEW,
    }
    summary, table = render_steps(histories).split("\n\n")
    assert summary.endswith("renamed, with their history: soft_max to softmax")
    assert [row.split("[")[0] for row in table.splitlines()[1:]] == [NEW, NEW]
    assert json.loads(steps_json(histories))[0]["renamed_from"] == [OLD]


def test_searching_again_doubles_no_step(database: Database) -> None:
    search(database)
    search(database)

    assert len(load_change_points(database)) == 2


def test_a_name_that_was_measured_as_late_as_the_new_one_was_not_given_up() -> None:
    both = points(OLD, range(1, 9)) + points(NEW, range(5, 9))

    assert renames_along(LINE, both, [(OLD, NEW)]).today == {}


def test_a_chain_of_renames_leads_to_the_newest_name() -> None:
    measured = points(OLD, range(1, 4)) + points(NEW, range(4, 7)) + points(NEWEST, range(7, 9))

    assert renames_along(LINE, measured, [(OLD, NEW), (NEW, NEWEST)]).today == {OLD: NEWEST, NEW: NEWEST}


def test_a_run_with_both_names_counts_once_with_the_newer_one() -> None:
    measured = points(OLD, range(1, 7)) + points(NEW, range(5, 9))

    (history,) = histories_along(
        LINE, measured, rules=Policy(), rule=None, found_at=EPOCH, renames=Renames({OLD: NEW})
    )

    assert [point.series.case.benchmark for point in history.points] == [OLD] * 4 + [NEW] * 4
    assert history.left_out == 2


@pytest.mark.parametrize(
    ("commits", "outcome", "renamed"),
    [
        ((4, STEP_AT), Outcome.REGRESSED, ((OLD, Case.of(NEW, {"rows": 1024})),)),
        ((STEP_AT, 4), Outcome.IMPROVED, ((NEW, Case.of(OLD, {"rows": 1024})),)),
        ((RENAMED_AT, STEP_AT), Outcome.REGRESSED, ()),
    ],
)
def test_two_commits_are_compared_across_a_rename_in_either_direction(
    database: Database,
    tmp_path: Path,
    commits: tuple[int, int],
    outcome: Outcome,
    renamed: tuple[tuple[str, Case], ...],
) -> None:
    base, candidate = commits

    judgement = compare(database, a_sha(base), a_sha(candidate), checkout=tmp_path)

    (verdict,) = judgement.verdicts
    assert verdict.outcome is outcome
    assert verdict.baseline_run_ids == (a_header(base).run_id,)
    assert judgement.missing == ()
    assert judgement.renamed == renamed
    assert ("Renamed, with their history" in render_text(compose(judgement))) == bool(renamed)


def test_two_names_in_one_of_the_runs_are_two_benchmarks(tmp_path: Path) -> None:
    database = Database(tmp_path / "two.duckdb")
    base = measure(database, 1, OLD, 0.25)
    both = a_run(2, measurements=(a_measurement(OLD, seed=2), a_measurement(NEW, seed=3, renamed_from=OLD)))
    save_run(database, both)

    judgement = compare(database, base, both.header.run_id, checkout=tmp_path)

    reasons = {verdict.series.case.benchmark: verdict.reason for verdict in judgement.verdicts}
    assert reasons == {OLD: Reason.INTERVALS_OVERLAP, NEW: Reason.NEW_BENCHMARK}
    assert judgement.renamed == ()


def test_a_benchmark_that_failed_under_its_new_name_is_failed_and_not_missing_as_well(tmp_path: Path) -> None:
    database = Database(tmp_path / "two.duckdb")
    base = measure(database, 1, OLD, 0.25)
    measure(database, 2, NEW, 0.25, renamed_from=OLD)
    failed = a_run(
        3,
        measurements=(a_measurement("other", seed=3),),
        failures=(a_failure(NEW, case=Case.of(NEW, {"rows": 1024})),),
    )
    save_run(database, failed)

    judgement = compare(database, base, failed.header.run_id, checkout=tmp_path)

    assert judgement.unanswered == "1 failed"
