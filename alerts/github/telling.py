"""Tell GitHub about judged runs: comment, check, summary. What fails is said, and hides nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from alerts import chart
from alerts.errors import GitHubError
from alerts.github.checks import check_of, post_check
from alerts.github.comments import post_section
from alerts.github.report import section_of
from alerts.judging import judge_run
from alerts.message import compose
from alerts.trends import Trend, load_trends
from store import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from alerts.github.client import Client
    from alerts.github.pictures import PictureBranch
    from alerts.github.sections import Section
    from alerts.github.subject import Subject
    from alerts.judge import RunJudgement
    from alerts.markdown import Surroundings
    from alerts.message import Message
    from alerts.policy import Rules
    from store.database import Database

SUMMARY_BYTES_MAX = 900_000  # GitHub takes 1 MiB from a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A judged run in the words that GitHub is told."""

    judgement: RunJudgement
    message: Message
    section: Callable[[int], Section]


def prepare(
    database: Database, run_id: str, rules: Rules, around: Surroundings, *, pictures: PictureBranch | None
) -> tuple[Told, str | None]:
    """Judge a run and put it into words.

    Returns:
        It, and why pictures are missing that were asked for, or None.
    """
    judgement = judge_run(database, run_id, rules)
    message = compose(judgement)
    trends, missing = _with_pictures(load_trends(database, judgement), pictures)
    section = section_of(message, replace(around, trends=trends))
    return Told(judgement=judgement, message=message, section=section), missing


def comment_on(
    client: Client,
    subject: Subject,
    section: Callable[[int], Section],
    say: Callable[[str], None],
    *,
    replaces: Sequence[str] = (),
) -> None:
    """Post one section, where there is a pull request to post it to, and say where.

    Args:
        client: who posts.
        subject: the pull request.
        section: renders it into so many bytes.
        say: takes one line about what was done.
        replaces: keys of sections that this one makes void.

    Raises:
        GitHubError: it could not be posted.
    """
    if subject.number is None:
        say(
            f"{shown.short(subject.head_sha)} is the newest commit of no open pull request: nothing is posted"
        )
        return
    posted = post_section(
        client,
        subject.number,
        section,
        replaces=replaces,
        head_sha=subject.head_sha,
    )
    said = "is about a newer commit and was left" if posted.outcome == "left" else f"was {posted.outcome}"
    say(f"the comment {said}: {posted.url}")


def check_on(client: Client, told: Told, say: Callable[[str], None]) -> None:
    """Put the check on the commit that was measured.

    Raises:
        GitHubError: it could not be put there, or what was measured is no commit.
    """
    section = told.section(SUMMARY_BYTES_MAX // 15)
    if not section.commit_sha or told.judgement.header.dirty:
        raise GitHubError("uncommitted changes have no commit to put a check on")
    check = check_of(told.judgement, section, title=told.message.answer)
    say(f"the check says {check.conclusion}: {post_check(client, check)}")


def append_summary(path: Path, section: Callable[[int], Section]) -> None:
    """Add what was found to the page of the workflow run.

    Raises:
        GitHubError: the file cannot be written.
    """
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(section(SUMMARY_BYTES_MAX).text + "\n")
    except OSError as error:
        raise GitHubError(
            f"GITHUB_STEP_SUMMARY={path} cannot be written: {error.strerror or error}"
        ) from error


def _with_pictures(
    trends: Mapping[str, Trend], branch: PictureBranch | None
) -> tuple[dict[str, Trend], str | None]:
    drawn = dict(trends)
    if branch is None or not trends:
        return drawn, None
    if not chart.can_draw():
        return drawn, "no pictures but characters: install 'kernelwatch[alerts]' to have pictures drawn"
    try:
        for series_id, trend in trends.items():
            url = branch.put(chart.trend_png(trend.points, title=trend.label))
            drawn[series_id] = replace(trend, picture_url=url)
    except GitHubError as error:
        return drawn, f"no pictures but characters: {error}"
    return drawn, None
