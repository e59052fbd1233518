"""The command `alerts triage`: what it stores, prints and refuses."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from builders import GPU_UUID, a_measurement, a_run, a_sha
from click.testing import CliRunner, Result
from trees import SETTINGS

from alerts.cli import alerts
from store.database import Database
from store.runs import save_run

if TYPE_CHECKING:
    from pathlib import Path

    from store.records import Run

TOMORROW = (datetime.now(UTC) + timedelta(days=1)).date()
SEVEN = a_sha(7)


def slower(number: int) -> Run:
    """A session on commit 7, which is on the main line and 4 % slower; a second case did not change."""
    measurements = (
        a_measurement(median_ms=0.26, seed=700 + number),
        a_measurement(parameters={"rows": 2048}, seed=800 + number),
    )
    return a_run(7, number=number, measurements=measurements)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    for number in range(2):
        save_run(Database(path), slower(number))
        assert run("judge", "--store", str(path), "--run", slower(number).header.run_id).exit_code == 0
    return path


@pytest.fixture
def store(history: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    copy = shutil.copy(history, tmp_path / "copy.duckdb")
    monkeypatch.setenv("KERNELWATCH_STORE", str(copy))
    monkeypatch.chdir(tmp_path)
    return str(copy)


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(alerts, list(arguments), **options)


def triage(*arguments: str) -> str:
    """What a call that goes well prints."""
    result = run("triage", *arguments)
    assert result.exit_code == 0, result.output
    return result.output


def events() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(triage("list", "--history", "--format", "json"))
    return found


@pytest.mark.usefixtures("store")
def test_a_confirmed_change_is_listed_until_it_is_accepted() -> None:
    assert triage("list").startswith("1 change to decide about\n\nbenchmark           change")

    said = triage("accept", "softmax", "--at", SEVEN, "--as", "Ada", "-m", "wanted: more exact")

    assert said.split("  ", 1)[1] == "Ada accepted, softmax at 000000000: wanted: more exact\n"
    assert triage("list") == (
        "0 changes to decide about\n\n1 more: decided, recovered, or on branches (--all shows them)\n"
    )
    (change,) = json.loads(triage("list", "--all", "--format", "json"))
    assert (change["benchmark"], change["commit"], change["open"]) == ("softmax[rows=1024]", SEVEN, False)
    assert change["accepted"]["body"] == "wanted: more exact"


@pytest.mark.usefixtures("store")
def test_the_json_of_a_decision_has_who_when_and_what_about() -> None:
    (event,) = json.loads(
        triage("mute", "softmax[rows=1024]", "--gpu", GPU_UUID[:8], "--until", str(TOMORROW),
               "-m", "known", "--as", "Ada", "--format", "json")
    )  # fmt: skip

    assert event == events()[0]
    assert event["parameters"] == {"rows": 1024}
    assert (event["gpu_uuid"], event["series_id"], event["commit"]) == (GPU_UUID, None, SEVEN)
    assert (event["action"], event["muted_until"], event["body"]) == ("mute", str(TOMORROW), "known")
    assert datetime.fromisoformat(event["decided_at"]).utcoffset() is not None


def test_a_muted_regression_is_judged_and_shown_and_ends_in_no_failure(store: str) -> None:
    judge = ("judge", "--store", store, "--fail-on", "regression")
    assert run(*judge).exit_code == 1
    triage("mute", "softmax", "--until", str(TOMORROW), "-m", "driver fault", "--as", "Ada")

    muted = run(*judge)
    as_json = json.loads(run(*judge, "--format", "json").output)["verdicts"]

    assert muted.exit_code == 0
    assert "1 regressed (1 confirmed, 1 of them muted)" in muted.output
    assert (
        f"2 muted until {TOMORROW} by Ada: driver fault (softmax[rows=1024], softmax[rows=2048])"
        in muted.output
    )
    assert [verdict["muted"]["decided_by"] for verdict in as_json] == ["Ada", "Ada"]
    assert as_json[0]["outcome"] == "REGRESSED"
    triage("unmute", "softmax", "--as", "Bob")
    assert run(*judge).exit_code == 1


@pytest.mark.usefixtures("store")
def test_assigning_noting_and_linking_leave_a_change_open_and_show_beside_it() -> None:
    triage("assign", "softmax", "--to", "Grace", "--as", "Ada")
    triage("note", "softmax", "-m", "since the new launcher", "--as", "Ada")
    triage("link", "softmax", "--to", "https://example.org/issues/7", "--as", "Ada")

    said = triage("list")

    assert said.startswith("1 change to decide about")
    assert "assigned to Grace" in said
    assert "softmax[rows=1024]: Ada noted, softmax at 000000000: since the new launcher" in said
    assert "Ada linked https://example.org/issues/7, softmax at 000000000" in said


@pytest.mark.usefixtures("store")
def test_taking_a_decision_back_opens_the_change_again_and_stays_in_the_history() -> None:
    accepted = triage("accept", "softmax", "--as", "Ada").split()[0]

    said = triage("revoke", accepted, "-m", "too early", "--as", "Bob")

    assert f"Bob took back {accepted}, softmax at 000000000: too early" in said
    assert triage("list").startswith("1 change to decide about")
    assert [event["action"] for event in events()] == ["accept", "revoke"]
    again = run("triage", "revoke", accepted)
    assert (again.exit_code, "taken back before" in again.output) == (3, True)


@pytest.mark.usefixtures("store")
def test_who_decides_is_gits_user_and_without_one_the_login_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GIT_CONFIG_COUNT": "2",
        "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "Ada Example",
        "GIT_CONFIG_KEY_1": "user.email", "GIT_CONFIG_VALUE_1": "ada@example.org",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    triage("accept", "softmax")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "0")
    monkeypatch.setenv("LOGNAME", "grace")
    triage("accept", "softmax")

    assert [event["decided_by"] for event in events()] == ["Ada Example <ada@example.org>", "grace"]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("accept", "sofmax"), "near it: softmax"),
        (("accept", "softmax[rows=7]"), "near it: softmax[rows="),
        (("accept", "softmax", "--at", "ffff"), "names no run"),
        (("accept", "softmax", "--gpu", "GPU-9"), "none of them begins like that"),
        (("accept", "softmax", "--series", ""), "2 of them begin like that"),
        (("unmute", "softmax"), "softmax is not muted"),
        (("revoke", "0"), "no decision has an id that begins with '0'"),
    ],
)
def test_what_cannot_be_decided_is_refused_and_leaves_nothing(arguments: tuple[str, ...], words: str) -> None:
    result = run("triage", *arguments)

    assert result.exit_code == 3
    assert words in result.output
    assert events() == []


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("mute", "softmax", "--until", "2020-01-01", "-m", "x"), "is over already"),
        (("mute", "softmax", "--until", "2199-01-01", "-m", "x"), "longer than a year"),
        (("mute", "softmax", "--until", str(TOMORROW), "-m", " "), "the message is empty"),
        (("assign", "softmax", "--to", " "), "who shall look at it is empty"),
        (("accept", "softmax", "--as", " "), "who decides is empty"),
        (("link", "softmax", "--to", "javascript:alert(1)"), "no web address"),
        (("revoke", ""), "no id is given"),
    ],
)
def test_what_can_be_no_decision_is_a_question_of_usage(arguments: tuple[str, ...], words: str) -> None:
    result = run("triage", *arguments)

    assert result.exit_code == 2
    assert words in result.output
    assert events() == []


@pytest.mark.usefixtures("store")
def test_accepting_where_nothing_changed_is_pointed_out_and_stored_all_the_same() -> None:
    result = run("triage", "accept", "softmax", "softmax[rows=2048]", "--at", SEVEN, "--as", "Ada")

    assert result.exit_code == 0
    assert result.stderr.count("Note:") == 1
    assert "no verdict at 000000000 says that softmax[rows=2048] changed" in result.stderr
    assert len(events()) == 2


@pytest.mark.usefixtures("store")
def test_a_mute_without_a_day_or_a_reason_is_a_question_of_usage() -> None:
    for arguments in (("-m", "x"), ("--until", str(TOMORROW)), ("--until", "forever", "-m", "x")):
        assert run("triage", "mute", "softmax", *arguments).exit_code == 2


def test_uncommitted_changes_cannot_be_accepted(store: str) -> None:
    save_run(Database(store), a_run(9, header={"dirty": True}))

    result = run("triage", "accept", "softmax")

    assert (result.exit_code, "only uncommitted changes" in result.output) == (3, True)


@pytest.mark.usefixtures("store")
def test_what_a_person_typed_drives_no_terminal() -> None:
    triage("note", "softmax", "-m", "\x1b[31mred\nnext\u202e", "--as", "Eve\x07")

    for said in (triage("list"), triage("list", "--history")):
        assert r"Eve\x07 noted, softmax at 000000000: \x1b[31mred next\u202e" in said
