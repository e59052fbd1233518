"""Nothing missing is a pass: what a run does not answer is named, in every form and in the exit code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_measurement, a_point, a_run, a_sha
from click.testing import CliRunner, Result
from judgements import a_candidate, a_history, a_judgement

from alerts.cli import alerts
from alerts.completeness import environment_change
from alerts.jsonform import judgement_json
from alerts.judging import judge_run
from alerts.message import compose
from alerts.terminal import render_text
from store.database import Database
from store.records import Case, Outcome, Reason, Tier
from store.runs import save_run
from store.verdicts import load_verdicts

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Run

OLD_DRIVER = {"environment": "cuda=13.0 driver=570.1 torch=2.11.0"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, arguments)


def measured(commit: int, *, softmax: float = 0.25, **changes: Any) -> Run:
    seed = 100 * commit
    return a_run(commit, measurements=(a_measurement(seed=seed, median_ms=softmax),), **changes)


@pytest.fixture(name="store")
def _store(tmp_path: Path) -> str:
    """Eight commits with a benchmark that stays and one that is gone from the ninth on."""
    url = str(tmp_path / "runs.duckdb")
    for commit in range(1, 9):
        both = (a_measurement(seed=commit), a_measurement("gone", seed=commit))
        save_run(Database(url), a_run(commit, measurements=both))
    save_run(Database(url), measured(9))
    return url


def test_a_missing_benchmark_is_no_pass(store: str) -> None:
    shown = run("judge", "--store", store)
    gated = run("judge", "--store", store, "--fail-on", "regression")

    assert shown.exit_code == 0
    assert "gone[rows=1024]: was last measured on 000000000, and was not part of this run" in shown.output
    assert gated.exit_code == 3
    assert gated.stderr == "No pass: 1 missing. What was not judged has not passed.\n"


@pytest.mark.parametrize("command", [("comment", "--dry-run"), ("judge",)])
def test_a_run_in_which_nothing_was_judged_says_that_this_is_no_pass(
    store: str, command: tuple[str, ...]
) -> None:
    save_run(Database(store), a_run(10, measurements=(), failures=(a_failure("stays"),)))

    gated = run(*command, "--store", store, "--fail-on", "regression")

    assert gated.exit_code == 3
    assert gated.stderr.startswith("No pass: 1 failed, 2 missing.")


@pytest.mark.parametrize(
    "command",
    [
        ("email", "--dry-run", "--to", "ada@example.org"),
        ("webhook", "--dry-run", "--kind", "slack", "--url-variable", "HOOK"),
    ],
)
def test_who_is_sent_nothing_is_told_that_what_is_missing_has_not_passed(
    store: str, command: tuple[str, ...]
) -> None:
    silent = run(*command, "--store", store)

    assert "nothing was sent (no pass either: 1 missing)" in silent.output


def test_a_missing_benchmark_is_named_by_the_commit_after_the_next_one_too(store: str) -> None:
    save_run(Database(store), measured(10))

    told = json.loads(run("judge", "--store", store, "--format", "json").output)

    assert told["missing"] == ["gone[rows=1024]"]
    assert told["last_measured"] == {"gone[rows=1024]": a_sha(8)[:9]}
    assert told["unanswered"] == "1 missing"


def test_a_failed_benchmark_that_never_had_a_number_is_told_from_one_that_had(store: str) -> None:
    gone = a_failure(case=Case.of("gone", {"rows": 1024}))
    save_run(Database(store), measured(10, failures=(gone, a_failure("hopeless"))))

    text = run("judge", "--store", store).output
    told = json.loads(run("judge", "--store", store, "--format", "json").output)

    assert "gone[rows=1024]: failed in call (ValueError" in text
    assert "hopeless: failed in call, and was never measured on an ancestor (ValueError" in text
    assert [failure["never_measured"] for failure in told["failed"]] == [False, True]
    assert told["unanswered"] == "2 failed"


def test_a_new_benchmark_is_no_gap() -> None:
    judgement = a_judgement(a_candidate(), a_candidate(benchmark="fresh"), history=a_history())

    assert judgement.unanswered is None
    assert compose(judgement).answer.startswith("1 unchanged, 1 new")
    assert json.loads(judgement_json(judgement))["new"] == ["fresh[rows=1024]"]


def test_a_number_that_could_not_be_judged_is_a_gap() -> None:
    judgement = a_judgement(a_candidate(), a_candidate(benchmark="shaky", tier=Tier.C))

    assert judgement.unanswered == "1 inconclusive"


def test_everything_in_order_passes(store: str) -> None:
    both = (a_measurement(seed=1000), a_measurement("gone", seed=1000))
    save_run(Database(store), a_run(10, measurements=both))

    result = run("judge", "--store", store, "--fail-on", "regression")

    assert (result.exit_code, result.stderr) == (0, "")


def test_a_new_environment_is_said_with_what_was_before_it() -> None:
    history = a_history(header=OLD_DRIVER)

    judgement = a_judgement(a_candidate(), history=history)

    (verdict,) = judgement.verdicts
    assert (verdict.outcome, verdict.reason) == (Outcome.INCONCLUSIVE, Reason.OTHER_ENVIRONMENT)
    assert judgement.new_series == (
        "driver 570.1 -> 580.159.04 began a new series with 000000000, which has no earlier run. What was "
        "measured before, 20 runs up to 000000000, is never compared with it"
    )
    assert "driver 570.1 -> 580.159.04 began a new series" in render_text(compose(judgement))


def test_a_young_series_says_which_environment_began_it_until_it_has_a_whole_pool() -> None:
    old = tuple(a_point(commit, header=OLD_DRIVER) for commit in range(1, 15))

    young = a_judgement(a_candidate(), history=(*old, *a_history(length=6)))
    grown = a_judgement(a_candidate(), history=(*old, *a_history(length=20)))

    assert young.new_series is not None
    assert "which has 6 earlier runs. What was measured before, 14 runs" in young.new_series
    assert grown.new_series is None


def test_two_environments_that_take_turns_begin_no_new_series() -> None:
    other = tuple(a_point(commit, number=1, header=OLD_DRIVER) for commit in range(8, 21))

    assert a_judgement(a_candidate(), history=(*a_history(length=13), *other)).new_series is None


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("driver=1 torch=2", "driver=3 torch=2", "driver 1 -> 3"),
        ("driver=1", "driver=1 ecc=on", "ecc unknown -> on"),
        ("", "torch=2", "torch unknown -> 2"),
        ("words", "words words", "another environment"),
    ],
)
def test_what_differs_between_environments_is_named(before: str, after: str, said: str) -> None:
    assert environment_change(before, after) == said


def test_a_renamed_benchmark_carries_its_history_on(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    for commit in range(1, 9):
        save_run(database, a_run(commit, measurements=(a_measurement("soft_max", seed=commit),)))
    renamed = a_measurement("softmax", seed=900, median_ms=0.26, renamed_from="soft_max")
    save_run(database, a_run(9, measurements=(renamed,)))
    forgotten = a_measurement("softmax", seed=1000, median_ms=0.26)  # declared once is enough
    save_run(database, a_run(10, measurements=(forgotten,)))

    for commit, runs in ((9, 8), (10, 9)):
        judgement = judge_run(database, a_run(commit).header.run_id)
        (verdict,) = judgement.verdicts
        assert verdict.outcome is Outcome.REGRESSED
        assert len(verdict.baseline_run_ids) == runs
        assert judgement.missing == ()
        assert judgement.renamed == (("soft_max", Case.of("softmax", {"rows": 1024})),)
        assert "Renamed, with their history: soft_max to softmax." in render_text(compose(judgement))


@pytest.mark.parametrize(
    "measurements",
    [
        (("softmax", "soft_max"), ("soft_max", None)),  # the old one is still there
        (("softmax", "soft_max"), ("softmin", "soft_max")),  # two claim it
    ],
)
def test_a_name_that_was_not_given_up_or_is_claimed_twice_is_carried_on_by_none(
    tmp_path: Path, measurements: tuple[tuple[str, str | None], ...]
) -> None:
    database = Database(tmp_path / "runs.duckdb")
    for commit in range(1, 8):
        save_run(database, a_run(commit, measurements=(a_measurement("soft_max", seed=commit),)))
    made = tuple(a_measurement(name, seed=8, renamed_from=old) for name, old in measurements)
    save_run(database, a_run(8, measurements=made))

    judgement = judge_run(database, a_run(8).header.run_id)

    by_name = {verdict.series.case.benchmark: verdict.reason for verdict in judgement.verdicts}
    assert by_name["softmax"] is Reason.NEW_BENCHMARK
    assert judgement.renamed == ()


def test_q_values_are_over_all_gpus_of_a_commit(tmp_path: Path) -> None:
    database = Database(tmp_path / "runs.duckdb")
    ids = []
    for number, gpu in enumerate(("GPU-a", "GPU-b")):
        for commit in range(1, 8):
            save_run(database, measured(commit, number=number, header={"gpu_uuid": gpu}))
        last = measured(8, softmax=0.26 - 0.01 * number, number=number, header={"gpu_uuid": gpu})
        save_run(database, last)
        ids.append(last.header.run_id)
        judge_run(database, last.header.run_id)

    slower, same = (load_verdicts(database, run_ids=[run_id])[0] for run_id in ids)

    assert slower.p_value is not None
    assert same.p_value is not None
    assert slower.p_value < same.p_value
    assert slower.q_value == pytest.approx(2 * slower.p_value)
    assert same.q_value == pytest.approx(same.p_value)
