"""`alerts comment` as its user has it: a workflow's environment, a store, and a stand-in for GitHub."""

from __future__ import annotations

import io
import shutil
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from builders import a_failure, a_run, a_sha
from click.testing import CliRunner
from fake_github import TOKEN, FakeGitHub, Fault
from fake_github_answers import REPOSITORY, a_pull
from github_jobs import HEAD, a_measuring_event, a_workflow_job, a_zip, an_event, comment, slower
from judgements import a_candidate, a_judgement

from alerts import chart
from alerts.cli import alerts
from alerts.github.checks import check_of, conclusion_of
from alerts.github.report import section_of
from alerts.markdown import Surroundings
from alerts.message import compose
from store.database import Database
from store.records import PairedRole
from store.runs import find_runs, save_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six commits and two sessions of the seventh, the first of them judged."""
    path = tmp_path_factory.mktemp("history") / "history.duckdb"
    for commit in range(1, 7):
        save_run(Database(path), a_run(commit))
    for number in range(2):
        save_run(Database(path), slower(number))
    CliRunner().invoke(alerts, ["judge", "--store", str(path), "--run", slower(0).header.run_id])
    return path


@pytest.fixture
def store(history: Path, tmp_path: Path) -> str:
    return str(shutil.copy(history, tmp_path / "copy.duckdb"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGitHub]:
    with a_workflow_job(monkeypatch, tmp_path) as hub:
        yield hub


@pytest.fixture(name="measured")
def _measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The event of a workflow run that measured a fork's pull request."""
    a_measuring_event(monkeypatch, tmp_path)


def test_a_confirmed_regression_is_posted_printed_and_fails_the_job(
    hub: FakeGitHub, store: str, tmp_path: Path
) -> None:
    result = comment(
        store, "--pull", "7", "--dashboard", "https://perf.example/kw/", "--fail-on", "regression"
    )

    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("1 regressed (1 confirmed), 1 not measured\n")
    assert "the comment was created: https://github.com/" in result.stderr
    (body,) = hub.bodies()
    assert body.startswith("### \U0001f534 1 regressed (1 confirmed), 1 not measured\n")
    assert "\u2581" in body  # the row of characters stands where no picture is
    assert "(https://perf.example/kw/trends?series=" in body
    assert f"(https://perf.example/kw/commit?sha={HEAD}&run=" in body
    assert f"({hub.url.replace(hub.url, 'https://github.com')}/{REPOSITORY}/actions/runs/99)" in body
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("### \U0001f534 1 regressed")


@pytest.mark.parametrize(("fail_on", "code"), [((), 3), (("--fail-on", "regression"), 1)])
def test_a_failing_github_hides_nothing(
    hub: FakeGitHub, store: str, tmp_path: Path, fail_on: tuple[str, ...], code: int
) -> None:
    hub.forbidden.add("POST /comments")

    result = comment(store, "--pull", "7", "--check", *fail_on)

    assert result.exit_code == code
    assert result.stdout.startswith("1 regressed (1 confirmed)")
    assert "Error: POST" in result.stderr
    assert "403 Resource not accessible by integration" in result.stderr
    assert (tmp_path / "summary.md").exists()
    assert len(hub.checks) == 1  # one failure does not keep the other from being tried


def test_the_check_fails_on_the_confirmed_regression_and_notes_the_lines(hub: FakeGitHub, store: str) -> None:
    result = comment(store, "--pull", "7", "--check")

    assert "the check says failure: " in result.stderr
    (check,) = hub.checks.values()
    assert (check["name"], check["head_sha"], check["conclusion"]) == (
        "kernelwatch (NVIDIA H200)",
        HEAD,
        "failure",
    )
    assert [(note["path"], note["start_line"], note["annotation_level"]) for note in check["sent"]] == [
        ("suites/example.py", 12, "failure"),
        ("suites/example.py", 30, "warning"),
    ]
    assert "softmax[rows=1024] is 4.0" in check["sent"][0]["message"]


def test_a_check_is_not_doubled_and_old_notes_do_not_stay(hub: FakeGitHub, store: str) -> None:
    for _ in range(2):
        comment(store, "--pull", "7", "--check")

    assert [len(check["sent"]) for check in hub.checks.values()] == [2, 2]  # GitHub shows the newer


def test_more_notes_than_github_takes_at_once_are_sent_in_parts(hub: FakeGitHub, store: str) -> None:
    failures = tuple(a_failure(f"b{number}") for number in range(120))
    save_run(Database(store), a_run(7, number=9, failures=failures, header={"suites": ("suites",)}))

    comment(store, "--pull", "7", "--check")

    (check,) = hub.checks.values()
    assert len(check["sent"]) == 120


def test_a_picture_is_put_on_its_own_branch_once_and_shown(hub: FakeGitHub, store: str) -> None:
    if not chart.can_draw():
        pytest.skip("needs altair and vl-convert")
    for _ in range(2):
        result = comment(store, "--pull", "7", "--pictures", "kernelwatch/pictures")
        assert result.exit_code == 0, result.output

    ((branch, path),) = hub.files
    assert branch == "kernelwatch/pictures"
    assert hub.files[branch, path].startswith(b"\x89PNG")
    assert f'<img src="https://github.com/{REPOSITORY}/raw/kernelwatch/pictures/{path}" ' in hub.bodies()[0]
    assert sum(entry.endswith("/git/refs") for entry in hub.log) == 1


@pytest.mark.parametrize("step", ["POST /git/trees", "PUT .png"])
def test_where_pictures_may_not_be_kept_characters_stand_and_a_note_says_so(
    hub: FakeGitHub, store: str, step: str
) -> None:
    hub.forbidden.add(step)

    result = comment(store, "--pull", "7", "--pictures", "pictures")

    assert result.exit_code == 0
    assert "no pictures but characters: " in result.stderr
    assert "it needs contents=write" in result.stderr
    assert "\u2581" in hub.bodies()[0]


@pytest.mark.usefixtures("measured")
def test_an_artifact_is_judged_in_a_copy_that_is_forgotten(hub: FakeGitHub, tmp_path: Path) -> None:
    trusted = tmp_path / "trusted.duckdb"
    for commit in range(1, 7):
        save_run(Database(trusted), a_run(commit))
    hub.artifacts[12] = [("logs", b"no zip"), ("kernelwatch", a_zip(tmp_path, slower()))]

    result = comment(str(trusted), "--artifact", "kernelwatch")

    assert result.exit_code == 0, result.output
    assert hub.bodies()[0].startswith("### \U0001f7e0 1 regressed (1 flagged), 1 not measured")
    assert len(find_runs(Database(trusted))) == 6
    assert TOKEN not in "".join(seen for seen in hub.tokens_seen if not seen.startswith("127.0.0.1"))


@pytest.mark.usefixtures("measured")
def test_without_a_store_a_paired_artifact_still_gives_verdicts(hub: FakeGitHub, tmp_path: Path) -> None:
    baseline = a_run(6, header={"paired_role": PairedRole.BASELINE, "paired_with": slower().header.run_id})
    candidate = slower(paired_role=PairedRole.CANDIDATE, paired_with=baseline.header.run_id)
    hub.artifacts[12] = [("kernelwatch-h200", a_zip(tmp_path, candidate, baseline))]

    result = comment(str(tmp_path / "none.duckdb"), "--artifact", "kernelwatch")

    assert result.exit_code == 0, result.output
    assert "8 windows, paired" in hub.bodies()[0]
    assert not (tmp_path / "none.duckdb").exists()


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"run.gz": b"nonsense"}, "is no run as `collect --output` writes it"),
        ({f"f{n}": b"" for n in range(40)}, "40 files, more than 32"),
        ({"bomb": b"\0" * (33 * 2**20)}, "a file of more than"),
        ({}, "holds no run of 000000000 but of nothing"),
    ],
    ids=["nonsense", "many", "large", "empty"],
)
def test_a_hostile_artifact_is_refused_with_what_is_wrong(
    hub: FakeGitHub, store: str, files: dict[str, bytes], message: str
) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    hub.artifacts[12] = [("kernelwatch", packed.getvalue())]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert message in result.stdout
    (body,) = hub.bodies()
    assert body.startswith("### \U0001f7e1 Nothing was measured that can be judged\n")


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("content", [b"", b"PK\x05\x06", b"no archive at all" * 99])
def test_what_is_no_archive_is_refused(hub: FakeGitHub, store: str, content: bytes) -> None:
    hub.artifacts[12] = [("kernelwatch", content)]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert "no archive that can be read" in result.stdout


@pytest.mark.usefixtures("measured")
def test_a_run_of_another_commit_than_githubs_is_not_judged(
    hub: FakeGitHub, store: str, tmp_path: Path
) -> None:
    hub.artifacts[12] = [("kernelwatch", a_zip(tmp_path, a_run(5)))]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert "holds no run of 000000000 but of 000000000" in result.stdout
    assert "Holds no run" not in hub.bodies()[0]
    assert "The artifact 'kernelwatch' holds no run of 000000000" in hub.bodies()[0]


@pytest.mark.usefixtures("measured")
def test_a_run_that_claims_another_repository_is_not_judged(
    hub: FakeGitHub, store: str, tmp_path: Path
) -> None:
    hub.artifacts[12] = [("kernelwatch", a_zip(tmp_path, slower(repository="github.com/example/other")))]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert "holds runs of 'github.com/example/other' and not of 'github.com/example/kernels'" in result.stdout


@pytest.mark.usefixtures("measured")
def test_an_artifact_that_is_not_there_is_named(hub: FakeGitHub, store: str) -> None:
    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert "workflow run 12 has no artifact 'kernelwatch'" in result.stdout
    assert "Workflow run 12 has no artifact 'kernelwatch': did it end before it measured?" in hub.bodies()[0]


@pytest.mark.usefixtures("measured")
def test_a_pull_request_that_moved_on_gets_no_comment_and_no_failure(
    hub: FakeGitHub, tmp_path: Path, store: str
) -> None:
    hub.pulls[7] = a_pull(7, sha=a_sha(8))
    hub.artifacts[12] = [("kernelwatch", a_zip(tmp_path, slower(5)))]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 0
    assert "the newest commit of no open pull request: nothing is posted" in result.stderr
    assert hub.bodies() == []


def test_the_pull_request_of_the_event_needs_no_option(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_event(monkeypatch, tmp_path, "pull_request", {"pull_request": {"number": 7}})

    assert comment(store).exit_code == 0
    assert len(hub.bodies()) == 1


def test_an_event_about_nothing_says_which_option_is_missing(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    an_event(monkeypatch, tmp_path, "schedule", {})

    result = comment(store)

    assert result.exit_code == 3
    assert "say which one with --pull" in result.stderr
    assert hub.log == []


def test_a_dry_run_shows_what_would_be_posted_and_asks_nobody(hub: FakeGitHub, store: str) -> None:
    shown = comment(store, "--dry-run").stdout
    comment(store, "--pull", "7")

    assert hub.log[0].startswith("GET")
    assert shown.splitlines()[0] == hub.bodies()[0].splitlines()[0]
    assert shown.splitlines()[-1] == hub.bodies()[0].splitlines()[-1]


def test_without_httpx_a_dry_run_works_and_posting_says_what_to_install(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)

    assert comment(store, "--dry-run").exit_code == 0
    result = comment(store, "--pull", "7")
    assert result.exit_code == 3
    assert "install 'kernelwatch[alerts]'" in result.stderr


def test_a_run_and_an_artifact_at_once_are_refused(store: str) -> None:
    assert comment(store, "--run", "x", "--artifact", "y").exit_code == 2


def test_an_address_that_could_leave_its_link_is_refused(store: str) -> None:
    result = comment(store, "--dry-run", "--dashboard", "https://x) [evil](https://y")

    assert result.exit_code == 2
    assert "is no address of pages" in result.stderr


def test_a_server_error_while_posting_is_waited_for(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("alerts.github.client.time.sleep", lambda _: None)
    hub.faults[2] = Fault("answer", 502)

    assert comment(store, "--pull", "7").exit_code == 0
    assert len(hub.bodies()) == 1


@pytest.mark.parametrize(
    ("judgement", "conclusion"),
    [
        (a_judgement(a_candidate()), "success"),
        (a_judgement(a_candidate(0.9), confirmed=True), "success"),
        (a_judgement(a_candidate(1.05)), "neutral"),
        (a_judgement(a_candidate(1.05), confirmed=True), "failure"),
        (a_judgement(a_candidate(), history=()), "neutral"),
        (a_judgement(a_candidate(), failures=(a_failure(),)), "neutral"),
    ],
    ids=["unchanged", "improved", "flagged", "confirmed", "nothing-judged", "failed"],
)
def test_the_conclusion_comes_from_confirmed_verdicts_and_what_is_open_has_not_passed(
    judgement: Any, conclusion: str
) -> None:
    section = section_of(compose(judgement), Surroundings())(1000)

    assert conclusion_of(judgement, section) == conclusion


@pytest.mark.parametrize("source", ["/etc/passwd:3", "a/../../b:1", "no line", "x\ny:3", "a\\b:2", ""])
def test_a_source_outside_the_repository_gets_no_note(source: str) -> None:
    judgement = a_judgement(a_candidate(1.05, source=source, header={"suites": ("suites",)}))
    section = section_of(compose(judgement), Surroundings())(1000)

    assert check_of(judgement, section, title="t").notes == ()
