"""Two real runs of an H200 go the whole way: fold, tier, store, judge, comment, mail, page."""

from __future__ import annotations

import statistics
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner

from alerts.cli import alerts
from alerts.judging import judge_run
from alerts.markdown import render_markdown
from alerts.message import compose
from collector.intervals import fold_windows
from collector.report import run_text
from collector.tiers import clock_band, grade
from store.bundle import read_bundle
from store.database import Database
from store.records import Measurement, Outcome, Reason, Run, Tier, Timer
from store.runs import load_run, save_run
from store.series import load_points
from store.verdicts import load_verdicts

FOLDER = Path(__file__).parent / "data" / "h200"
JUDGED_AT = datetime(2026, 12, 1, tzinfo=UTC)


@pytest.fixture(name="runs", scope="module")
def _runs() -> tuple[Run, Run]:
    return read_bundle(FOLDER / "first.kwrun"), read_bundle(FOLDER / "second.kwrun")


@pytest.fixture(name="measurements", scope="module")
def _measurements(runs: tuple[Run, Run]) -> list[Measurement]:
    return [measurement for run in runs for measurement in run.measurements]


@pytest.fixture(name="database", scope="module")
def _database(runs: tuple[Run, Run], tmp_path_factory: pytest.TempPathFactory) -> Database:
    database = Database(tmp_path_factory.mktemp("h200") / "runs.duckdb")
    for run in runs:
        save_run(database, run)
    return database


def test_the_runs_are_of_two_commits_with_every_benchmark_of_the_suite(runs: tuple[Run, Run]) -> None:
    first, second = runs

    assert first.header.commit_sha != second.header.commit_sha
    assert first.header.gpu_uuid == second.header.gpu_uuid
    assert {run.header.timer for run in runs} == {Timer.CUPTI}
    assert [len(run.measurements) for run in runs] == [29, 29]
    assert all(not run.failures for run in runs)


def test_every_window_had_a_process_of_its_own(measurements: list[Measurement]) -> None:
    for measurement in measurements:
        assert len({window.pid for window in measurement.windows}) == 8


def test_the_samples_fold_to_the_interval_that_was_measured(measurements: list[Measurement]) -> None:
    for measurement in measurements:
        folded = fold_windows(
            [window.kept_ms for window in measurement.counted_windows], resolution=measurement.resolution_ms
        )

        assert folded == measurement.interval


def test_the_telemetry_gives_the_tier_and_the_exclusions_that_were_measured(runs: tuple[Run, Run]) -> None:
    for run in runs:
        for measurement in run.measurements:
            band = clock_band(
                pair
                for window in measurement.windows
                for pair in zip(window.sm_clock_mhz, window.throttle_reasons, strict=True)
            )
            graded = grade(measurement.windows, timer=run.header.timer, regime=run.header.clock_regime)

            assert graded.tier is measurement.tier
            for window in measurement.windows:
                pairs = zip(window.sm_clock_mhz, window.throttle_reasons, strict=True)
                assert tuple(band.exclusion(*pair) for pair in pairs) == window.exclusions


def test_held_clocks_reach_tier_a_without_any_privilege(measurements: list[Measurement]) -> None:
    assert {measurement.tier for measurement in measurements} == {Tier.A}


def test_only_calls_that_meet_the_power_limit_are_paused(measurements: list[Measurement]) -> None:
    pauses = {
        m.case.label: statistics.median(pause for window in m.windows for pause in window.pause_ms)
        for m in measurements
    }

    assert pauses["matmul_prefill[dtype=bfloat16, k=4096, m=2048, n=28672]"] > 0
    assert sum(pause == 0 for pause in pauses.values()) >= 20
    assert max(pauses.values()) < 5


def test_a_run_comes_back_from_the_store_as_it_was(database: Database, runs: tuple[Run, Run]) -> None:
    for run in runs:
        loaded = load_run(database, run.header.run_id)

        assert loaded.header == run.header
        assert loaded.measurements == run.measurements


def test_importing_a_run_again_changes_nothing(database: Database, runs: tuple[Run, Run]) -> None:
    before = len(load_points(database))

    assert save_run(database, runs[0]) is False
    assert len(load_points(database)) == before


def test_the_same_code_on_two_commits_is_not_called_different(
    database: Database, runs: tuple[Run, Run]
) -> None:
    judgement = judge_run(database, runs[1].header.run_id, judged_at=JUDGED_AT)

    assert len(judgement.verdicts) == 29
    assert {verdict.outcome for verdict in judgement.verdicts} == {Outcome.UNCHANGED}
    assert load_verdicts(database, run_ids=[runs[1].header.run_id])


def test_the_first_run_has_nothing_to_be_compared_with_and_says_so(
    database: Database, runs: tuple[Run, Run]
) -> None:
    judgement = judge_run(database, runs[0].header.run_id, judged_at=JUDGED_AT)

    assert {v.outcome for v in judgement.verdicts} == {Outcome.INCONCLUSIVE}
    assert {v.reason for v in judgement.verdicts} <= {Reason.NO_BASELINE, Reason.NEW_BENCHMARK}


def test_the_comment_says_that_nothing_changed_and_what_would_have_been_missed(
    database: Database, runs: tuple[Run, Run]
) -> None:
    comment = render_markdown(compose(judge_run(database, runs[1].header.run_id, judged_at=JUDGED_AT)))

    assert "would have been missed" in comment
    assert "NVIDIA H200" in comment
    assert len(comment.encode()) < 60_000


def test_the_table_shows_every_benchmark_with_its_verdict(database: Database, runs: tuple[Run, Run]) -> None:
    text = run_text(runs[1], judge_run(database, runs[1].header.run_id, judged_at=JUDGED_AT).verdicts)

    assert text.count("UNCHANGED") == 29
    assert "matmul_fp8[k=4096, m=4096, n=4096]" in text


def test_the_command_lines_agree(database: Database, runs: tuple[Run, Run]) -> None:
    first, second = (run.header.commit_sha or "" for run in runs)

    compared = CliRunner().invoke(alerts, ["compare", first[:12], second[:12], "--store", database.url])
    comment = CliRunner().invoke(
        alerts, ["comment", "--run", runs[1].header.run_id, "--dry-run", "--store", database.url]
    )

    assert compared.exit_code == 0, compared.output
    assert "softmax" in compared.output
    assert comment.exit_code == 0, comment.output
    assert "kernelwatch:section" in comment.output
