"""The command: what it prints, and how it ends."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_measurement, a_run, a_sha
from click.testing import CliRunner, Result

from alerts.cli import alerts
from store.database import Database
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six commits, then two sessions of a seventh that is 4 per cent slower; copied, never changed."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    for number in range(2):
        save_run(Database(path), slower(number))
    return path


def slower(number: int) -> Any:
    measurement = a_measurement(median_ms=0.26, seed=700 + number)
    return a_run(7, number=number, measurements=(measurement,), header={"merge_base": a_sha(6)})


@pytest.fixture
def store(history: Path, tmp_path: Path) -> str:
    return str(shutil.copy(history, tmp_path / "copy.duckdb"))


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(alerts, list(arguments), **options)


def judge_both_sessions(store: str) -> None:
    for number in range(2):
        assert run("judge", "--store", store, "--run", slower(number).header.run_id).exit_code == 0


def test_judging_the_newest_run_prints_the_answer_first(store: str) -> None:
    result = run("judge", "--store", store)

    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "1 regressed (1 flagged)"


def test_the_json_holds_the_verdicts_with_their_evidence(store: str) -> None:
    result = run("judge", "--store", store, "--format", "json")

    (verdict,) = json.loads(result.output)["verdicts"]
    assert verdict["benchmark"] == "softmax[rows=1024]"
    assert verdict["name"] == "softmax"
    assert verdict["parameters"] == {"rows": 1024}
    assert verdict["outcome"] == "REGRESSED"
    assert verdict["reason"] == "intervals-apart"
    assert verdict["standing"] == "flagged"
    assert verdict["baseline_kind"] == "pool"
    assert len(verdict["baseline_run_ids"]) == 6
    assert verdict["effect"] == pytest.approx(0.04, abs=0.005)
    assert (
        verdict["candidate_ms"]["low"] < verdict["candidate_ms"]["center"] < verdict["candidate_ms"]["high"]
    )
    assert "slower than 6 runs" in verdict["message"]


def test_the_store_may_be_named_by_the_environment(store: str) -> None:
    assert run("judge", env={"KERNELWATCH_STORE": store}).exit_code == 0


def test_a_flag_alone_fails_nothing_and_a_confirmed_regression_does(store: str) -> None:
    flagged = run("judge", "--store", store, "--fail-on", "regression")
    judge_both_sessions(store)
    confirmed = run("judge", "--store", store, "--fail-on", "regression")

    assert flagged.exit_code == 0
    assert confirmed.exit_code == 1
    assert confirmed.output.startswith("1 regressed (1 confirmed)")


def test_a_confirmed_regression_passes_unless_it_is_asked_to_fail(store: str) -> None:
    judge_both_sessions(store)

    assert run("judge", "--store", store).exit_code == 0


def test_a_run_without_any_verdict_ends_with_three_and_still_prints(tmp_path: Path) -> None:
    path = tmp_path / "first.duckdb"
    save_run(Database(path), a_run(1))

    result = run("judge", "--store", str(path))

    assert result.exit_code == 3
    assert result.output.startswith("1 inconclusive")
    assert result.stderr == ""


def test_a_store_that_is_not_there_ends_with_three_and_says_so(tmp_path: Path) -> None:
    result = run("judge", "--store", str(tmp_path / "nothing.duckdb"))

    assert result.exit_code == 3
    assert "nothing.duckdb" in result.stderr
    assert "Traceback" not in result.output


def test_an_unknown_run_ends_with_three_and_says_so(store: str) -> None:
    result = run("judge", "--store", store, "--run", "ffff")

    assert result.exit_code == 3
    assert "ffff" in result.stderr


def test_comparing_prints_both_sides_and_a_single_baseline_never_fails(store: str) -> None:
    result = run("compare", a_sha(6), a_sha(7), "--store", store, "--fail-on", "regression")

    assert result.exit_code == 0
    assert "against one run of 000000000" in result.output
    assert "250." in result.output
    assert "260." in result.output
    assert "REGRESSED, flagged" in result.output


def test_a_comparison_as_json_names_what_was_compared(store: str) -> None:
    result = run("compare", a_sha(6), a_sha(7), "--store", store, "--format", "json")

    compared = json.loads(result.output)
    assert compared["commit"] == a_sha(7)
    assert compared["baseline"] == "one run of 000000000"
    assert [verdict["outcome"] for verdict in compared["verdicts"]] == ["REGRESSED"]
    assert compared["failed"] == []
    assert compared["missing"] == []


def test_a_comment_is_printed_as_markdown(store: str) -> None:
    result = run("comment", "--dry-run", "--store", store)

    assert result.exit_code == 0
    assert result.output.startswith("### \U0001f7e0 1 regressed (1 flagged)\n")
    assert "| `softmax[rows=1024]` |" in result.output


def test_posting_a_comment_without_a_token_says_what_to_set(store: str) -> None:
    nothing = dict.fromkeys(
        ("KERNELWATCH_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "KERNELWATCH_GITHUB_APP_ID"), ""
    )

    result = run("comment", "--store", store, "--repository", "a/b", env=nothing)

    assert result.exit_code == 3
    assert "no GitHub token: set GITHUB_TOKEN" in result.stderr


def test_help_names_the_exit_codes() -> None:
    result = run("--help")

    assert result.exit_code == 0
    assert "1 a confirmed regression" in result.output


def test_the_module_is_the_command_and_loads_no_drawing_or_gpu_package(store: str) -> None:
    """What ``collect`` starts; it must not cost seconds, and must work without the extras."""
    program = (
        "import sys; from click.testing import CliRunner; from alerts.cli import alerts; "
        f"CliRunner().invoke(alerts, ['judge', '--store', {store!r}]); "
        "print(sorted({'torch', 'altair', 'vl_convert', 'streamlit', 'pandas'} & set(sys.modules)))"
    )

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    command = subprocess.run(
        [sys.executable, "-m", "alerts", "judge", "--store", store, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert loaded.stdout.strip() == "[]"
    assert json.loads(command.stdout)["verdicts"][0]["outcome"] == "REGRESSED"
