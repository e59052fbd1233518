"""Judging runs that lie in a real store."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_commit, a_failure, a_header, a_measurement, a_run, a_sha
from judgements import JUDGED_AT

from alerts.judging import judge_run
from alerts.naming import newest_run
from alerts.rejudge import rejudge
from store.database import Database
from store.errors import RunNotFound, StoreMissing
from store.records import BaselineKind, Case, Outcome, Reason, Standing, Verdict
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from alerts.judge import RunJudgement


def some_measurements(seed: int, *, softmax: float = 0.25) -> tuple[Any, ...]:
    return (
        a_measurement("softmax", median_ms=softmax, seed=seed),
        a_measurement("matmul", median_ms=1.5, seed=seed, parameters={"m": 4096}),
    )


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one run on each of twenty commits; copied, never changed."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 21):
        save_run(Database(path), a_run(commit, measurements=some_measurements(commit * 100)))
    return path


@pytest.fixture
def database(history: Path, tmp_path: Path) -> Database:
    return Database(shutil.copy(history, tmp_path / "copy.duckdb"))


def measure(database: Database, *, number: int = 0, softmax: float = 0.25, **header: Any) -> str:
    """Measure commit 21, which left the main line at commit 20."""
    run = a_run(
        21,
        number=number,
        measurements=some_measurements(2100 + number, softmax=softmax),
        header={"merge_base": a_sha(20)} | header,
    )
    save_run(database, run)
    return run.header.run_id


def verdict_on(judgement: RunJudgement, benchmark: str) -> Verdict:
    return next(v for v in judgement.verdicts if v.series.case.benchmark == benchmark)


def stored_standing(database: Database, run_id: str) -> Standing:
    verdicts = load_verdicts(database, run_ids=[run_id])
    return next(v.standing for v in verdicts if v.series.case.benchmark == "softmax")


def test_a_planted_slowdown_of_three_per_cent_is_flagged_and_the_rest_is_not(database: Database) -> None:
    judgement = judge_run(database, measure(database, softmax=0.2575))

    softmax = verdict_on(judgement, "softmax")
    assert softmax.outcome is Outcome.REGRESSED
    assert softmax.standing is Standing.FLAGGED
    assert softmax.baseline_kind is BaselineKind.POOL
    assert len(softmax.baseline_run_ids) == 20
    assert verdict_on(judgement, "matmul").outcome is Outcome.UNCHANGED


def test_the_same_code_is_unchanged(database: Database) -> None:
    judgement = judge_run(database, measure(database))

    assert {v.outcome for v in judgement.verdicts} == {Outcome.UNCHANGED}


def test_the_verdicts_are_in_the_store_as_they_were_returned(database: Database) -> None:
    run_id = measure(database, softmax=0.2575)

    judgement = judge_run(database, run_id, judged_at=JUDGED_AT)

    stored = load_verdicts(database, run_ids=[run_id])
    assert sorted(stored, key=lambda v: v.series.id) == sorted(judgement.verdicts, key=lambda v: v.series.id)


def test_judging_twice_leaves_one_verdict_a_series(database: Database) -> None:
    run_id = measure(database)

    judge_run(database, run_id, judged_at=JUDGED_AT)
    again = judge_run(database, run_id, judged_at=JUDGED_AT)

    assert len(load_verdicts(database, run_ids=[run_id])) == len(again.verdicts) == 2


def test_a_second_session_that_agrees_confirms_both(database: Database) -> None:
    first = measure(database, softmax=0.2575)
    judge_run(database, first)
    second = measure(database, number=1, softmax=0.2575)

    judgement = judge_run(database, second)

    assert verdict_on(judgement, "softmax").standing is Standing.CONFIRMED
    assert judgement.has_confirmed_regression
    assert stored_standing(database, first) is Standing.CONFIRMED


def test_a_second_session_that_does_not_show_it_withdraws_the_first(database: Database) -> None:
    first = measure(database, softmax=0.2575)
    judge_run(database, first)

    judge_run(database, measure(database, number=1))

    assert stored_standing(database, first) is Standing.WITHDRAWN


def test_judging_the_first_session_again_keeps_what_the_second_made_of_it(database: Database) -> None:
    first = measure(database, softmax=0.2575)
    judge_run(database, first)
    judge_run(database, measure(database, number=1, softmax=0.2575))

    judgement = judge_run(database, first)

    assert verdict_on(judgement, "softmax").standing is Standing.CONFIRMED


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize(("coarsest_ms", "expected"), [(6e-3, Standing.FLAGGED), (1e-3, Standing.CONFIRMED)])
def test_the_coarser_timer_of_two_sessions_says_what_is_worth_confirming_whichever_is_judged_last(
    database: Database, order: tuple[int, int], coarsest_ms: float, expected: Standing
) -> None:
    """Two per cent of 0.255 ms are 0.005 ms."""
    runs = [
        a_run(
            21,
            number=number,
            measurements=(a_measurement(median_ms=0.255, seed=2100 + number, resolution_ms=resolution),),
        )
        for number, resolution in enumerate((3.2e-5, coarsest_ms))
    ]
    for run in runs:
        save_run(database, run)
    for place in order:
        judge_run(database, runs[place].header.run_id)

    assert [stored_standing(database, run.header.run_id) for run in runs] == [expected] * 2
    assert rejudge(database, is_chosen=lambda run: run.commit_sha == a_sha(21)).changed == ()


def test_two_runs_of_uncommitted_changes_never_confirm_one_another(database: Database) -> None:
    judge_run(database, measure(database, softmax=0.2575, dirty=True))

    judgement = judge_run(database, measure(database, number=1, softmax=0.2575, dirty=True))

    assert verdict_on(judgement, "softmax").standing is Standing.FLAGGED


def test_the_sixth_run_of_a_young_history_is_still_judged_provisionally(tmp_path: Path) -> None:
    database = Database(tmp_path / "young.duckdb")
    for commit in range(1, 6):
        save_run(database, a_run(commit, measurements=some_measurements(commit * 100)))
    run = a_run(6, measurements=some_measurements(600, softmax=0.2575))
    save_run(database, run)

    softmax = verdict_on(judge_run(database, run.header.run_id), "softmax")

    assert softmax.outcome is Outcome.REGRESSED
    assert softmax.baseline_kind is BaselineKind.SINGLE
    assert "provisional" in softmax.message


def test_the_first_run_of_a_store_has_no_baseline(tmp_path: Path) -> None:
    database = Database(tmp_path / "first.duckdb")
    run = a_run(1)
    save_run(database, run)

    judgement = judge_run(database, run.header.run_id)

    assert [v.reason for v in judgement.verdicts] == [Reason.NO_BASELINE]
    assert not judgement.is_conclusive


def test_a_run_on_another_gpu_only_says_so(database: Database) -> None:
    judgement = judge_run(database, measure(database, gpu_uuid="GPU-fresh"))

    assert {v.reason for v in judgement.verdicts} == {Reason.OTHER_GPU}


def test_failed_and_missing_benchmarks_are_listed(database: Database) -> None:
    run = a_run(
        21,
        measurements=(a_measurement("softmax", seed=2100),),
        failures=(a_failure(),),
        header={"merge_base": a_sha(20)},
    )
    save_run(database, run)

    judgement = judge_run(database, run.header.run_id)

    assert [failure.case for failure in judgement.failures] == [Case.of("broken", {})]
    assert judgement.missing == (Case.of("matmul", {"m": 4096}),)


def test_commits_on_a_merged_side_branch_are_no_baseline(database: Database) -> None:
    """Commit 90 was made on commit 20, measured at twice the time, and merged by commit 91."""
    side = a_commit(90, parents=(a_sha(20),))
    merge = a_commit(91, parents=(a_sha(20), a_sha(90)))
    line = a_run(20).history
    save_run(database, a_run(90, measurements=some_measurements(9000, softmax=0.5), history=(side, *line)))
    run = a_run(91, measurements=some_measurements(9100), history=(merge, *line))
    save_run(database, run)

    softmax = verdict_on(judge_run(database, run.header.run_id), "softmax")

    assert softmax.outcome is Outcome.UNCHANGED
    assert a_header(90).run_id not in softmax.baseline_run_ids


def test_the_newest_run_is_the_one_that_was_started_last(database: Database) -> None:
    assert newest_run(database) == a_header(20).run_id


def test_a_run_that_is_not_there_is_an_error(database: Database) -> None:
    with pytest.raises(RunNotFound):
        judge_run(database, "ffffffff")


def test_a_store_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing):
        newest_run(Database(tmp_path / "nothing.duckdb"))
