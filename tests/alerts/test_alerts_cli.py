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
from mailserver import Mailbox, listening

from alerts.cli import alerts
from store.database import Database
from store.records import Tier
from store.runs import save_run

if TYPE_CHECKING:
    from collections.abc import Iterator
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


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


@pytest.fixture
def smtp(mailbox: Mailbox) -> Iterator[str]:
    with listening(mailbox) as port:
        yield f"localhost:{port}"


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(alerts, list(arguments), **options)


def judge_both_sessions(store: str) -> None:
    for number in range(2):
        assert run("judge", "--store", store, "--run", slower(number).header.run_id).exit_code == 0


def test_judging_the_newest_run_prints_the_answer_first(store: str) -> None:
    result = run("judge", "--store", store)

    assert result.exit_code == 0
    assert result.output.splitlines()[0] == "1 regressed (1 flagged)"


def test_the_json_is_a_list_of_verdicts_with_their_evidence(store: str) -> None:
    result = run("judge", "--store", store, "--format", "json")

    (verdict,) = json.loads(result.output)
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
    assert result.output.startswith("**1 regressed (1 flagged)**: ")
    assert "| `softmax[rows=1024]` |" in result.output


def test_posting_a_comment_is_a_usage_error_that_says_what_to_do(store: str) -> None:
    result = run("comment", "--store", store)

    assert result.exit_code == 2
    assert "--dry-run" in result.stderr


def test_a_confirmed_regression_is_mailed(store: str, smtp: str, mailbox: Mailbox) -> None:
    judge_both_sessions(store)

    result = run(
        "email", "--store", store, "--to", "ada@example.org", "--smtp", smtp, "--security", "none",
        "--from", "bot@example.org",
    )  # fmt: skip

    assert result.exit_code == 0, result.output
    assert result.output.startswith("sent '[kernelwatch] softmax[rows=1024] is ")
    assert result.output.endswith(" to ada@example.org\n")
    ((_, mail, _),) = mailbox.received
    assert b"Content-Type: image/png" in mail


def test_a_flag_is_mailed_only_when_asked_for(store: str, smtp: str, mailbox: Mailbox) -> None:
    arguments = ("email", "--store", store, "--to", "ada@example.org", "--smtp", smtp, "--security", "none")

    quiet = run(*arguments)
    loud = run(*arguments, "--flagged")

    assert quiet.exit_code == 0
    assert "nothing was sent (1 regression flagged" in quiet.output
    assert loud.output.startswith("sent '[kernelwatch]")
    assert len(mailbox.received) == 1


def test_a_tier_below_the_minimum_is_not_mailed(tmp_path: Path) -> None:
    path = tmp_path / "rough.duckdb"
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    rough = a_measurement(median_ms=0.3, tier=Tier.B)
    save_run(Database(path), a_run(7, measurements=(rough,), header={"merge_base": a_sha(6)}))
    arguments = ("email", "--store", str(path), "--to", "ada@example.org", "--dry-run", "--flagged")

    assert "no regression of tier A or better" in run(*arguments).output
    assert "Subject: [kernelwatch] softmax" in run(*arguments, "--min-tier", "B").output


def test_a_refused_recipient_ends_with_three_after_the_others_got_theirs(
    store: str, smtp: str, mailbox: Mailbox
) -> None:
    mailbox.refused = frozenset({"bob@example.org"})

    result = run(
        "email", "--store", store, "--flagged", "--to", "ada@example.org", "--to", "bob@example.org",
        "--smtp", smtp, "--security", "none",
    )  # fmt: skip

    assert result.exit_code == 3
    assert result.stdout.endswith(" to ada@example.org\n")
    assert "not for bob@example.org (550 5.1.1 no such mailbox)" in result.stderr


def test_a_dry_run_prints_the_mail_and_needs_no_server(store: str) -> None:
    result = run("email", "--store", store, "--to", "Ada <ada@example.org>", "--flagged", "--dry-run")

    assert result.exit_code == 0
    assert result.output.startswith("To: Ada <ada@example.org>\nSubject: [kernelwatch] softmax")
    assert "1 regressed (1 flagged)" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--to", "ada@example.org"), "--smtp HOST:PORT"),
        (("--to", "ada@example.org", "--smtp", "mail.example.org"), "is not HOST:PORT"),
        (("--to", "ada@example.org", "--smtp", "mail.example.org:99999"), "is not HOST:PORT"),
        (("--to", "ada", "--dry-run"), "is not a mail address"),
        (("--to", "ada@example.org\nBcc: all@example.org", "--dry-run"), "is not a mail address"),
        (("--to", "ada@example.org", "--from", "nobody", "--dry-run"), "is not a mail address"),
        (("--dry-run",), "Missing option '--to'"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(store: str, arguments: tuple[str, ...], said: str) -> None:
    result = run("email", "--store", store, *arguments)

    assert result.exit_code == 2
    assert said in result.stderr


def test_a_log_in_without_tls_is_refused_before_the_store_is_read(tmp_path: Path) -> None:
    result = run(
        "email", "--store", str(tmp_path / "none.duckdb"), "--to", "ada@example.org",
        "--smtp", "localhost:25", "--security", "none", "--user", "bot",
        env={"KERNELWATCH_SMTP_PASSWORD": "correct horse"},
    )  # fmt: skip

    assert result.exit_code == 3
    assert "password in the clear" in result.stderr
    assert "correct horse" not in result.output


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
    assert json.loads(command.stdout)[0]["outcome"] == "REGRESSED"
