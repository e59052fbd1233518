"""Orders in comments: who is obeyed, what is done, and what is no order."""

from __future__ import annotations

import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_run, a_sha
from click.testing import CliRunner, Result
from fake_github import TOKEN, FakeGitHub, listening
from fake_github_answers import REPOSITORY, a_pull
from github_description import example

from alerts.cli import alerts
from alerts.errors import GitHubError
from alerts.github.orders import Order, Verb, order_of
from alerts.github.place import Event
from store.bundle import write_bundle
from store.database import Database
from store.triage import load_triage_events

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = a_sha(7)


def a_payload(body: str, *, login: str = "ada", **issue: Any) -> dict[str, Any]:
    return {
        "action": "created",
        "comment": {"id": 5, "body": body, "user": {"login": login}},
        "issue": {"number": 7, "pull_request": {}} | issue,
    }


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGitHub]:
    with listening(FakeGitHub()) as hub:
        hub.pulls[7] = a_pull(7, sha=HEAD)
        hub.rights = {"ada": "write", "eve": "read"}
        pattern = example("workflow-run-paginated")["workflow_runs"][0]
        hub.runs = [dict(pattern, id=number, head_sha=HEAD) for number in (11, 12)]
        for name in ("KERNELWATCH_GITHUB_TOKEN", "KERNELWATCH_GITHUB_APP_ID"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.setenv("GITHUB_API_URL", hub.url)
        monkeypatch.setenv("GITHUB_REPOSITORY", REPOSITORY)
        monkeypatch.setenv("GITHUB_EVENT_NAME", "issue_comment")
        yield hub
    assert hub.violations == []


def obey(tmp_path: Path, payload: dict[str, Any]) -> Result:
    path = tmp_path / "event.json"
    path.write_text(json.dumps(payload), encoding="utf-8")
    store = str(tmp_path / "store.duckdb")
    return CliRunner().invoke(alerts, ["order", "--store", store], env={"GITHUB_EVENT_PATH": str(path)})


def test_rerun_starts_the_newest_measurement_of_the_commit_again(hub: FakeGitHub, tmp_path: Path) -> None:
    result = obey(tmp_path, a_payload("/kernelwatch rerun\nplease"))

    assert result.exit_code == 0, result.output
    assert hub.reruns == [12]
    assert hub.reactions == [(5, "rocket")]


def test_accept_is_remembered_with_who_ordered_it_and_where(hub: FakeGitHub, tmp_path: Path) -> None:
    write_bundle(a_run(7), tmp_path / "run.kernelwatch.gz")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(tmp_path / "run.kernelwatch.gz", "run.kernelwatch.gz")
    hub.artifacts[12] = [("kernelwatch", packed.getvalue())]

    result = obey(tmp_path, a_payload("/kernelwatch accept 'softmax[rows=1024]'"))

    assert result.exit_code == 0, result.output
    (event,) = load_triage_events(Database(tmp_path / "store.duckdb"))
    assert (event.commit_sha, event.scope.benchmark, event.decided_by) == (HEAD, "softmax", "ada on GitHub")
    assert event.body == f"ordered in https://github.com/{REPOSITORY}/pull/7"
    assert hub.reactions == [(5, "rocket")]


@pytest.mark.parametrize("login", ["eve", "nobody-known"])
def test_people_who_may_not_write_are_not_obeyed(hub: FakeGitHub, tmp_path: Path, login: str) -> None:
    result = obey(tmp_path, a_payload("/kernelwatch rerun", login=login))

    assert result.exit_code == 3
    assert f"{login} may not write to {REPOSITORY}" in result.stderr
    assert hub.reruns == []
    assert hub.reactions == [(5, "confused")]


def test_a_commit_that_was_never_measured_cannot_be_measured_again(hub: FakeGitHub, tmp_path: Path) -> None:
    hub.runs = []

    result = obey(tmp_path, a_payload("/kernelwatch rerun"))

    assert result.exit_code == 3
    assert "measure.yml never ran on 000000000" in result.stderr
    assert hub.reactions == [(5, "confused")]


def test_a_benchmark_that_was_not_measured_is_not_accepted(hub: FakeGitHub, tmp_path: Path) -> None:
    result = obey(tmp_path, a_payload("/kernelwatch accept nothing_like_it"))

    assert result.exit_code == 3
    assert hub.reactions == [(5, "confused")]


def test_a_comment_without_an_order_is_fine_and_asks_nobody(hub: FakeGitHub, tmp_path: Path) -> None:
    assert obey(tmp_path, a_payload("looks good")).exit_code == 0
    assert hub.log == []


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("issue_comment", a_payload("thanks, /kernelwatch rerun")),
        ("issue_comment", a_payload("text\n/kernelwatch rerun")),
        ("issue_comment", a_payload("/kernelwatch rerun", pull_request=None)),
        ("issue_comment", a_payload("/kernelwatch rerun") | {"action": "edited"}),
        ("pull_request", a_payload("/kernelwatch rerun")),
        ("issue_comment", {"action": "created"}),
    ],
    ids=["quoted", "later-line", "issue", "edited", "other-event", "empty"],
)
def test_what_only_looks_like_an_order_is_none(name: str, payload: dict[str, Any]) -> None:
    assert order_of(Event(name, payload)) is None


@pytest.mark.parametrize(
    "body",
    [
        "/kernelwatch sudo",
        "/kernelwatch accept",
        "/kernelwatch accept 'open",
        f"/kernelwatch accept {'a ' * 21}",
    ],
)
def test_an_order_that_is_not_known_or_names_nothing_is_refused(body: str) -> None:
    with pytest.raises(GitHubError, match="/kernelwatch"):
        order_of(Event("issue_comment", a_payload(body)))


def test_names_are_words_and_never_run() -> None:
    found = order_of(Event("issue_comment", a_payload("/kernelwatch  accept softmax '$(rm -rf /)' ")))

    assert found == Order(
        verb=Verb.ACCEPT, names=("softmax", "$(rm -rf /)"), by="ada", comment_id=5, number=7
    )
