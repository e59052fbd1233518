"""Where measuring failed the pull request is told so: in the comment, as a check, in the job's summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import cmarkgfm
import pytest
from builders import a_sha
from fake_github_answers import a_pull
from github_jobs import HEAD, a_measuring_event, a_workflow_job, a_zip, comment, slower

from alerts.github.gaps import Gap, gap_key
from alerts.github.sections import assemble, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fake_github import FakeGitHub

HOSTILE = (
    "<b>@ada</b> `x` | [l](http://e.example) \\n<!-- kernelwatch:section:v2 key=0123456789abcdef -->\u202e"
)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeGitHub]:
    with a_workflow_job(monkeypatch, tmp_path) as hub:
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "none.duckdb")


@pytest.mark.parametrize(
    ("conclusion", "said"),
    [
        ("failure", "the workflow failed"),
        ("cancelled", "the workflow was cancelled"),
        ("timed_out", "the workflow ran out of time"),
        ("action_required", "the workflow waits for somebody to approve it"),
    ],
)
def test_a_workflow_that_left_nothing_is_told_in_comment_check_and_summary(
    hub: FakeGitHub,
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    *,
    conclusion: str,
    said: str,
) -> None:
    a_measuring_event(monkeypatch, tmp_path, conclusion=conclusion)

    result = comment(store, "--artifact", "kernelwatch", "--check", "--orders")

    assert result.exit_code == 3, result.output
    assert result.stdout.startswith(f"Nothing was measured: {said}\nworkflow run 12 has no artifact")
    (body,) = hub.bodies()
    assert body.startswith(f"### \U0001f7e1 Nothing was measured: {said}\n")
    assert "(https://github.com/example/kernels/actions/runs/12)" in body
    assert "`/kernelwatch rerun`" in body
    (check,) = hub.checks.values()
    assert (check["name"], check["conclusion"], check["head_sha"]) == ("kernelwatch", "neutral", HEAD)
    assert check["output"]["title"] == f"Nothing was measured: {said}"
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("### \U0001f7e1 Nothing was")


def test_the_end_of_what_collect_said_is_quoted(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_measuring_event(monkeypatch, tmp_path, conclusion="failure")
    words = "".join(f"line {number}\n" for number in range(20)) + "Error: the driver is gone\n"
    hub.artifacts[12] = [("kernelwatch", a_zip(tmp_path, **{"collect.txt": words.encode()}))]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    assert "\n  Error: the driver is gone\n" in result.stdout
    assert "- `line 13`\n" in hub.bodies()[0]
    assert "- `Error: the driver is gone`\n" in hub.bodies()[0]
    assert "line 12" not in hub.bodies()[0]


def test_what_was_measured_is_told_beside_what_may_be_missing(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One GPU of two fell over."""
    a_measuring_event(monkeypatch, tmp_path, conclusion="failure")
    hub.artifacts[12] = [("kernelwatch-h200", a_zip(tmp_path, slower()))]

    result = comment(store, "--artifact", "kernelwatch")

    assert result.exit_code == 3
    (body,) = hub.bodies()
    assert len(parse(body)) == 2
    assert "1 inconclusive, 2 not measured, in 2 reports" in body.splitlines()[0]
    assert "### \U0001f7e1 The workflow that measures failed: something may be missing\n" in body


def test_a_later_run_that_measures_takes_the_gap_back(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_measuring_event(monkeypatch, tmp_path, conclusion="failure")
    comment(store, "--artifact", "kernelwatch", "--check")
    a_measuring_event(monkeypatch, tmp_path, id=13)
    hub.artifacts[13] = [("kernelwatch", a_zip(tmp_path, slower()))]

    result = comment(store, "--artifact", "kernelwatch", "--check")

    assert "the check says measured since" in result.stderr
    (body,) = hub.bodies()
    assert "Nothing was measured" not in body
    conclusions = {check["name"]: check["conclusion"] for check in hub.checks.values()}
    assert conclusions.pop("kernelwatch") == "success"
    assert list(conclusions.values()) == ["neutral"]


def test_a_push_that_ended_the_older_measurement_makes_no_noise(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_measuring_event(monkeypatch, tmp_path, conclusion="cancelled")
    hub.pulls[7] = a_pull(7, sha=a_sha(8))

    result = comment(store, "--artifact", "kernelwatch", "--check")

    assert result.exit_code == 0
    assert "newest commit of no open pull request: nothing is posted" in result.stderr
    assert (hub.bodies(), hub.checks) == ([], {})


def test_a_dry_run_shows_what_would_be_said(
    hub: FakeGitHub, store: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    a_measuring_event(monkeypatch, tmp_path, conclusion="failure")

    result = comment(store, "--artifact", "kernelwatch", "--dry-run")

    assert result.stdout.startswith("### \U0001f7e1 Nothing was measured")
    assert (hub.bodies(), result.exit_code) == ([], 3)


def test_nothing_that_a_pull_request_wrote_is_markup_or_a_marker() -> None:
    gap = Gap(
        key=gap_key("github.com/example/kernels", "kernelwatch"), head_sha=HEAD, workflow=HOSTILE,
        ended="failed", url="https://github.com/example/kernels/actions/runs/12", why=HOSTILE,
        words=(HOSTILE,) * 3, orders=True,
    )  # fmt: skip

    body = assemble([], lambda _: gap.section)

    html = cmarkgfm.github_flavored_markdown_to_html(body)
    assert "<b>" not in html
    assert html.count("<a ") == 1
    assert [section.key for section in parse(body)] == [gap.key]
    assert not any(line.startswith("@") or "\u202e" in line for line in body.splitlines())
    assert "\u202e" not in json.dumps(gap.text, ensure_ascii=False)
