"""A drift shows on every commit of the base branch: it is told once, as a drift, and by no commit's name."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import cmarkgfm
import pytest
from builders import a_header, a_measurement, a_run, a_sha
from bulletins import a_bulletin, a_section
from click.testing import CliRunner
from cmarkgfm.cmark import Options
from mailserver import Mailbox, listening

from alerts.change_words import how_much, search_command
from alerts.cli import alerts
from alerts.deciding import load_changes
from alerts.email_html import render_html
from alerts.email_text import render_mail_text
from alerts.github.checks import check_of
from alerts.github.report import section_of
from alerts.judging import judge_run
from alerts.markdown import BYTES_MAX, Surroundings
from alerts.message import Message, compose
from alerts.webhook_forms import json_object, slack_object, teams_object
from store.database import Database
from store.records import Drift, GitTag, Reason, SecondSession, Standing
from store.runs import save_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alerts.judge import RunJudgement

NEWEST = 34
TAGS = (GitTag(name="v1.2.0", commit_sha=a_sha(8)),)
HOSTILE = "v1<b>@ada</b>`|](http://e.example)\u202e$(x)"


def level_ms(commit: int) -> float:
    """0.5 % slower with each commit from 9 to 14."""
    return 0.25 * (1 + 0.005 * min(max(commit - 8, 0), 6))


@pytest.fixture(scope="module", name="drifted")
def _drifted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """34 commits, 3 % slower since v1.2.0; the newest three are judged."""
    path = tmp_path_factory.mktemp("drift") / "runs.duckdb"
    for commit in range(1, NEWEST + 1):
        measured = a_measurement(seed=commit, median_ms=level_ms(commit), source="suites/softmax.py:3")
        save_run(Database(path), a_run(commit, measurements=(measured,), git_tags=TAGS))
    for commit in range(NEWEST - 2, NEWEST + 1):
        judge_run(Database(path), a_header(commit).run_id)
    return path


@pytest.fixture(name="store")
def _store(drifted: Path, tmp_path: Path) -> str:
    return str(shutil.copy(drifted, tmp_path / "runs.duckdb"))


def confirmed(judgement: RunJudgement, **changes: Any) -> RunJudgement:
    verdicts = [replace(v, standing=Standing.CONFIRMED, **changes) for v in judgement.verdicts]
    return judgement.with_verdicts(verdicts)


@pytest.fixture(scope="module", name="judgement")
def _judgement(drifted: Path) -> RunJudgement:
    return confirmed(judge_run(Database(drifted), a_header(NEWEST).run_id))


def mail(store: str, port: int, commit: int) -> str:
    words = [
        "email", "--store", store, "--to", "ada@example.org", "--from", "k@example.org", "--security", "none",
        "--smtp", f"127.0.0.1:{port}", "--flagged", "--run", a_header(commit).run_id,
    ]  # fmt: skip
    return CliRunner().invoke(alerts, words).output


def test_a_drift_on_three_commits_is_one_change(store: str) -> None:
    (change,) = load_changes(Database(store), standing=Standing.FLAGGED)

    assert change.verdict.reason is Reason.DRIFTED
    assert change.shas == tuple(a_sha(commit) for commit in range(NEWEST - 2, NEWEST + 1))


def test_a_flagged_drift_is_mailed_on_the_first_commit_that_shows_it_and_not_again(store: str) -> None:
    mailbox = Mailbox()
    with listening(mailbox) as port:
        first, then = mail(store, port, NEWEST - 2), mail(store, port, NEWEST)

    assert "softmax[rows=1024] is 3.0" in first
    assert "slower than v1.2.0 (not confirmed) at" in first
    assert "1 regression told before" in then
    assert len(mailbox.received) == 1


def test_a_step_after_a_drift_is_news_of_its_own(store: str) -> None:
    database = Database(store)
    for commit in (NEWEST + 1, NEWEST + 2):
        step = a_measurement(seed=commit, median_ms=1.08 * level_ms(commit))
        save_run(database, a_run(commit, measurements=(step,), git_tags=TAGS))
        judge_run(database, a_header(commit).run_id)

    reasons = [change.verdict.reason for change in load_changes(database, standing=Standing.FLAGGED)]

    assert sorted(reasons) == sorted([Reason.DRIFTED, Reason.INTERVALS_APART])


def test_the_comment_says_since_when_and_blames_no_commit(judgement: RunJudgement) -> None:
    markdown = section_of(compose(judgement), Surroundings())(BYTES_MAX).text

    assert markdown.splitlines()[0] == "### \U0001f534 1 regressed (1 confirmed, 1 of them by drift)"
    lead = markdown.splitlines()[2]
    assert lead.startswith("`softmax[rows=1024]` is **3.0")
    assert "slower than v1.2.0** (95 %: " in lead
    assert lead.endswith("It drifted there over several commits; this one alone does not show it.")
    assert f"`collect bisect v1.2.0 {a_sha(NEWEST)[:9]} --benchmark softmax`" in markdown
    assert "REGRESSED since v1.2.0, confirmed" in markdown
    assert "find out why" not in markdown


def test_mail_and_chats_say_the_same(judgement: RunJudgement) -> None:
    bulletin = a_bulletin(a_section(judgement))

    text = render_mail_text(bulletin)
    assert "% slower than v1.2.0 at 0000" in bulletin.title
    assert "  REGRESSED since v1.2.0, confirmed, tier A\n" in text
    assert "No single commit shows it" in " ".join(text.split())
    assert "REGRESSED since v1.2.0, confirmed" in render_html(bulletin, ["<a@b>"])
    for form in (slack_object, teams_object):
        assert "REGRESSED since v1.2.0, confirmed" in json.dumps(form(bulletin))
    (row,) = json_object(bulletin, key="0")["runs"][0]["changed"]
    assert row["drift"]["since"] == "v1.2.0"


def test_the_note_on_a_benchmarks_line_is_headed_drift(judgement: RunJudgement) -> None:
    message = compose(judgement)
    section = section_of(message, Surroundings())(BYTES_MAX)
    suites = replace(judgement, header=replace(judgement.header, suites=("suites",)))

    (note,) = check_of(suites, section, title=message.answer).notes

    assert note["title"] == "Drift, confirmed"
    assert note["message"].endswith("slower than v1.2.0. No single commit shows it.")


def texts(message: Message, judgement: RunJudgement) -> Iterator[str]:
    bulletin = a_bulletin(a_section(judgement))
    yield bulletin.title
    yield render_mail_text(bulletin)
    yield render_html(bulletin, ["<a@b>"])
    yield json.dumps(slack_object(bulletin), ensure_ascii=False)
    yield json.dumps(teams_object(bulletin), ensure_ascii=False)
    yield section_of(message, Surroundings())(BYTES_MAX).text


def test_a_hostile_tag_is_neither_markup_nor_a_command(judgement: RunJudgement) -> None:
    (verdict,) = judgement.verdicts
    assert verdict.drift is not None
    drift = Drift(**{f: getattr(verdict.drift, f) for f in Drift.__dataclass_fields__} | {"since": HOSTILE})
    hostile = confirmed(judgement, drift=drift)
    message = compose(hostile)

    *others, markdown = texts(message, hostile)

    assert not any("\u202e" in text for text in (*others, markdown))
    assert "<b>" not in others[2]
    html = cmarkgfm.github_flavored_markdown_to_html(markdown, Options.CMARK_OPT_UNSAFE)
    assert "<b>" not in html
    assert "<a " not in html
    command = search_command(hostile.verdicts[0], a_sha(NEWEST))
    assert command is not None
    assert "'v1<b>" in command
    assert how_much(hostile.verdicts[0]).count("v1<b>") == 1


def test_both_sessions_stand_in_mail_and_chats(judgement: RunJudgement) -> None:
    second = SecondSession(
        run_id="9f8e7d6c-0000-4000-8000-000000000000", outcome=judgement.verdicts[0].outcome,
        reason=Reason.DRIFTED, effect=0.0288, effect_low=0.021, effect_high=0.0361,
    )  # fmt: skip
    bulletin = a_bulletin(a_section(confirmed(judgement, second=second)))
    said = "+2.88 % (+2.10 % to +3.61 %) in run 9f8e7d6c: confirmed"

    assert said in " ".join(render_mail_text(bulletin).split())
    assert said in render_html(bulletin, ["<a@b>"])
    assert said in json.dumps(slack_object(bulletin))
    assert said in json.dumps(teams_object(bulletin))
